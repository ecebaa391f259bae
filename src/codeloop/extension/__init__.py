"""The module that plugins import: decorators for their tools and hooks,
and the type of the context that these get.

    from codeloop.extension import Context, hook, tool

It imports no other module of codeloop, because plugins are loaded while the user waits.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

if TYPE_CHECKING:
    from pathlib import Path
    from threading import Event

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
# The attributes of a function by which the decorators mark it.
HOOKS_ATTRIBUTE = "__codeloop_hooks__"
TOOL_ATTRIBUTE = "__codeloop_tool__"
READ_ONLY_ATTRIBUTE = "__codeloop_read_only__"


class Context(Protocol):
    """The context of a call of a tool or a hook, which gets it as its parameter `ctx`.

    In a hook the ids and `agent` are empty, because its input has them. `options`: those of the
    plugin's entry in the configuration. `abort` is set when the call is cancelled:
    check it in long loops.
    """

    session_id: str
    message_id: str
    call_id: str
    agent: str
    directory: "Path"
    """The directory that the agent works in."""
    worktree: "Path"
    """The top of the work tree."""
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
        """Return once the rules or the user allow this. Otherwise an exception is raised,
        which should end the call.

        `patterns`: the targets of this call; `always`: the patterns that the answer "always" allows
        from then on. Only available in tools.
        """
        ...

    def report(
        self, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Show the progress of the call to the user. Only available in tools."""
        ...

    async def operation(
        self,
        name: str,
        *,
        path: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> Any:
        """Call an operation of the HTTP API by its id, such as `session.list`;
        return its answer.
        """
        ...

    def log(self, message: str, level: str = "info", **extra: Any) -> None:
        """Write a line to codeloop's log."""
        ...

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Wait for an awaitable of this context in a function that is not async:
        `ctx.wait(ctx.ask("deploy"))`.
        """
        ...


def hook(name: str, *, policy: bool = False) -> Callable[[F], F]:
    """Mark a function as the handler of a hook; it may be marked for several hooks.

    The function takes `input` and `output` (and `ctx`), and changes `output` or returns a
    replacement. `policy`: if the function fails or takes too long,
    the action that it should judge is refused.
    """

    def mark(function: F) -> F:
        marks: list[tuple[str, bool]] = function.__dict__.setdefault(HOOKS_ATTRIBUTE, [])
        marks.append((name, policy))
        return function

    return mark


@overload
def tool(function: F) -> F: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, read_only: bool = False
) -> Callable[[F], F]: ...
def tool(
    function: Any = None,
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: bool = False,
) -> Any:
    """Mark a function as a tool. By default its name and docstring are those of the tool.

    `read_only`: the tool changes nothing, so the library also offers it in the profile `read-only`.
    """

    def mark(function: Any) -> Any:
        function.__dict__[TOOL_ATTRIBUTE] = (name, description)
        function.__dict__[READ_ONLY_ATTRIBUTE] = read_only
        return function

    return mark if function is None else mark(function)
