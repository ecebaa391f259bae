"""What the file of a plugin imports: marks for its tools and hooks, and the type of what they are given besides.

    from codeloop.extension import Context, hook, tool

Imports nothing that costs time: extensions are loaded while a person waits.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

if TYPE_CHECKING:
    from pathlib import Path
    from threading import Event

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
HOOKS_ATTRIBUTE = "__codeloop_hooks__"
TOOL_ATTRIBUTE = "__codeloop_tool__"
READ_ONLY_ATTRIBUTE = "__codeloop_read_only__"


class Context(Protocol):
    """What a tool or a hook gets besides its arguments, as its parameter `ctx`.

    The ids and `agent` are empty in a hook: what they would be is in its input. `options`: those of the plugin's entry
    in the configuration. `abort` is set when the call is cancelled: look at it in what takes long.
    """

    session_id: str
    message_id: str
    call_id: str
    agent: str
    directory: "Path"
    """Where the agent works."""
    worktree: "Path"
    """The top of the repository."""
    options: Mapping[str, Any]
    abort: "Event"

    async def ask(
        self,
        permission: str,
        patterns: Sequence[str] = ("*",),
        *,
        always: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Return when the rules or the person allow this; what is raised else says why, and ends the call well.

        `patterns`: what is done now; `always`: what "always" allows from then on. Only in a tool.
        """
        ...

    def report(self, *, title: str | None = None, metadata: Mapping[str, Any] | None = None) -> None:
        """Show progress. Only in a tool."""
        ...

    async def operation(
        self,
        name: str,
        *,
        path: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> Any:
        """Call an operation of the HTTP API by its id (`session.list`); return its answer."""
        ...

    def log(self, message: str, level: str = "info", **extra: Any) -> None:
        """Write a line to our log."""
        ...

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Wait for an awaitable of this context in a plain function: `ctx.wait(ctx.ask("deploy"))`."""
        ...


def hook(name: str, *, policy: bool = False) -> Callable[[F], F]:
    """Mark a function as a hook; one may be marked for several.

    It takes `input` and `output` (and `ctx`), changes `output` or returns what takes its place. `policy`: when it fails
    or takes too long, what it was to judge is refused.
    """

    def mark(function: F) -> F:
        marks: list[tuple[str, bool]] = function.__dict__.setdefault(HOOKS_ATTRIBUTE, [])
        marks.append((name, policy))
        return function

    return mark


@overload
def tool(function: F) -> F: ...
@overload
def tool(*, name: str | None = None, description: str | None = None, read_only: bool = False) -> Callable[[F], F]: ...
def tool(
    function: Any = None, *, name: str | None = None, description: str | None = None, read_only: bool = False
) -> Any:
    """Mark a function as a tool, under its own name and docstring unless others are given.

    `read_only`: it changes nothing, so the library may offer it in the profile `plan`, too.
    """

    def mark(function: Any) -> Any:
        function.__dict__[TOOL_ATTRIBUTE] = (name, description)
        function.__dict__[READ_ONLY_ATTRIBUTE] = read_only
        return function

    return mark if function is None else mark(function)
