"""The description of an extension, and the protocols of calling it."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

from msgspec import Struct

from codeloop.extend.host.protocol import CallProgress, HostMessage, HostQuestion, LoadSpec
from codeloop.schema.wire import JSON

Language = Literal["python", "javascript"]


class Extension(Struct, frozen=True):
    """One extension. `name`: unique in a project, as shown to people. `path`: see LoadSpec.

    `origin`: the file of the extension, or the place of its entry in the configuration.
    `is_project`: the extension belongs to the project, not to the user. `digest`: the hash of its
    content and options, and of codeloop's version; the key of its cached offer; "" for one with a
    problem. `policy`: the hooks whose actions are refused while the extension can't answer.
    `problem`: the reason why it can't be loaded, or "";
    extensions with a problem are kept only if they have a policy.
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
    def load_spec(self) -> LoadSpec:
        """What a host needs to load the extension."""
        return LoadSpec(self.name, self.path, self.kind, self.options)


class CallListener(Protocol):
    """Receives the questions and the progress of a tool while it runs."""

    async def ask(self, question: HostQuestion) -> None:
        """Let the rules or the user decide about a need. Raises CodeloopError if it is refused."""
        ...

    def report(self, progress: CallProgress) -> None:
        """Show the tool's progress."""
        ...


class SendToExtension(Protocol):
    """Sends a request to an extension's host, which loads the extension first.
    Raises HookFailed, ExtensionRaised.
    """

    async def __call__(
        self,
        extension: Extension,
        message: Callable[[int], HostMessage],
        listener: CallListener | None,
    ) -> Any:
        """Return the answer, decoded from JSON. `message`: makes the request from its id."""
        ...
