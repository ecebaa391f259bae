"""What an extension is to us before anything of it runs, and what is needed of who asks it."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

from msgspec import Struct

from codeloop.extend.host.protocol import CallProgress, HostMessage, HostQuestion, LoadedExtension
from codeloop.schema.wire import JSON

Language = Literal["python", "javascript"]


class Extension(Struct, frozen=True):
    """One extension. `name`: unique in a project, as people read it. `path`: as in LoadedExtension.

    `origin`: the file, or the entry of the configuration, that brings it. `is_project`: it came with the project.
    `digest`: of its content, its options and what it is read by; what it offers is remembered under it.
    `policy`: hooks at which nothing happens without it, as its configuration says, or as it said when it was loaded
    last. `problem`: why there is nothing to load; only those that are a policy are kept with one.
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
        """What a host is told of it."""
        return LoadedExtension(self.name, self.path, self.kind, self.options)


class CallListener(Protocol):
    """Who makes a call of a tool: hears of it while it works."""

    async def ask(self, question: HostQuestion) -> None:
        """Let the rules or a person decide. Raises CodeloopError: refused."""
        ...

    def report(self, progress: CallProgress) -> None:
        """Take its progress."""
        ...


class AskExtension(Protocol):
    """Sends an extension a request. Raises HookFailed, ExtensionRaised."""

    async def __call__(
        self, extension: Extension, message: Callable[[int], HostMessage], listener: CallListener | None
    ) -> Any:
        """Return the answer."""
        ...
