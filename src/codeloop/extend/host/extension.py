"""An extension before it is loaded, and the protocols of its callers."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

from msgspec import Struct

from codeloop.extend.host.protocol import CallProgress, HostMessage, HostQuestion, LoadedExtension
from codeloop.schema.wire import JSON

Language = Literal["python", "javascript"]


class Extension(Struct, frozen=True):
    """One extension. `name`: unique in a project, as people read it. `path`: as in LoadedExtension.

    `origin`: the file, or the entry of the configuration, that brings it. `is_project`: it came with the project.
    `digest`: of its content, options and runtime; the key of its cached offer. `policy`: hooks that are refused without
    it, by its configuration or its last offer. `problem`: why it can't be loaded; only policies are kept with one.
    """

    name: str
    language: Language
    kind: Literal["tool", "plugin"]
    path: str
    origin: str
    digest: str
    options: JSON | None = None
    is_project: bool = False
    policy: tuple[str, ...] = ()
    problem: str = ""

    @property
    def loaded(self) -> LoadedExtension:
        """Its description for a host."""
        return LoadedExtension(self.name, self.path, self.kind, self.options)


class CallListener(Protocol):
    """The caller of a tool, called back while it works."""

    async def ask(self, question: HostQuestion) -> None:
        """Let the rules or the user decide. Raises CodeloopError: refused."""
        ...

    def report(self, progress: CallProgress) -> None:
        """Receive its progress."""
        ...


class AskExtension(Protocol):
    """Sends an extension a request. Raises HookFailed, ExtensionRaised."""

    async def __call__(
        self, extension: Extension, message: Callable[[int], HostMessage], listener: CallListener | None
    ) -> Any:
        """Return the answer."""
        ...
