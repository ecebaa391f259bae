"""Commands that run in a terminal of the user's editor: tools ask for them,
the room `acp` passes them on.
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from msgspec import Struct


class EditorCommand(Struct, frozen=True):
    """A command for an editor's terminal. `arguments`: the program and its arguments;
    `timeout` in seconds.

    `show` is called with the terminal's id and what was printed until then.
    """

    session_id: str
    arguments: tuple[str, ...]
    directory: Path
    variables: Mapping[str, str]
    timeout: float
    show: Callable[[str, str], None]


class EditorCommandResult(Struct, frozen=True):
    """How a command in an editor's terminal ended.

    `code` is None where a signal (`signal`, its name) or the timeout (`timed_out`) ended it.
    """

    terminal_id: str
    output: str
    code: int | None
    signal: str | None
    timed_out: bool


RunInEditor = Callable[[EditorCommand], Awaitable[EditorCommandResult | None]]
"""Runs a command in an editor's terminal; None: the editor has none.
Raises CodeloopError when it refuses.
"""
