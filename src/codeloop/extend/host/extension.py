"""What an extension is to us before anything of it runs: where it lies, and by which digest it is known."""

from typing import Literal

from msgspec import Struct

from codeloop.extend.host.protocol import LoadedExtension
from codeloop.schema.wire import JSON

Language = Literal["python", "javascript"]


class Extension(Struct, frozen=True):
    """One extension. `name`: unique in a project, as people read it. `path`: as in LoadedExtension.

    `origin`: the file, or the entry of the configuration, that brings it. `is_project`: it came with the project.
    `digest`: of its content, its options and what it is read by; what it offers is remembered under it.
    """

    name: str
    language: Language
    kind: Literal["tool", "plugin"]
    path: str
    origin: str
    digest: str
    options: JSON | None = None
    is_project: bool = False

    @property
    def loaded(self) -> LoadedExtension:
        """What a host is told of it."""
        return LoadedExtension(self.name, self.path, self.kind, self.options)
