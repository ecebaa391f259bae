"""Which host an extension runs in, and what a project's hosts call."""

from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from msgspec import Struct

from codeloop.extend.hooks.answer_filter import Reach
from codeloop.extend.host.extension import Extension
from codeloop.extend.host.offer_cache import OfferCache
from codeloop.extend.host.protocol import HostHello, OperationCall
from codeloop.kit.program import Program
from codeloop.workspace.process.program_log import ProgramLog

# Runs an operation with its arguments.
RunOperation = Callable[[Any, Any], Awaitable[Any]]


class HostKey(Struct, frozen=True):
    """Which host an extension belongs to."""

    language: str
    is_confined: bool

    @property
    def name(self) -> str:
        """Its display name."""
        return f"{self.language} (sandboxed)" if self.is_confined else self.language


HOSTS_FOLDER = "extensions"
"""The start of the names of hosts' own folders."""
ALLOW_COMMAND = "codeloop plugin allow"
"""The command that lets extensions and hooks do more in their sandbox."""


class HostCallbacks(Struct, frozen=True):
    """The functions and settings of a project that its hosts use.

    `start` starts the program of a host, whose errors go to the given function; raises OSError.
    `find_reach` returns the reach of confined (True) or free hosts. `open_log` returns the log of a
    host by its name. `serve` runs an operation for a host, confined (True) or not. `find_agent`
    returns the agent of a session's message. `on_change` is called when other tools or hooks are
    offered than before, an extension failed, or a host follows events.
    """

    offer_cache: OfferCache
    hello: HostHello
    start: Callable[[HostKey, Callable[[bytes], None]], Awaitable[Program]]
    is_confined: Callable[[Extension], bool]
    find_reach: Callable[[bool], Reach]
    open_log: Callable[[str], ProgramLog]
    warn: Callable[[str], None]
    serve: Callable[[RunOperation, OperationCall, bool], Awaitable[Any]]
    find_agent: Callable[[str, str], str]
    on_change: Callable[[], None]


class ProcessCallbacks(Struct, frozen=True):
    """The functions that a host calls. `start` starts its program; raises OSError.
    `hello`: the greeting for it.

    `log`: gets a line for its log, `warn` one for the user. `serve`: runs an operation of the API.
    `acknowledge`: gets how many events were handled; None: the program was restarted.
    """

    name: str
    start: Callable[[], Awaitable[Program]]
    hello: HostHello
    log: Callable[[str], None]
    warn: Callable[[str], None]
    serve: Callable[[OperationCall], Coroutine[Any, Any, Any]]
    acknowledge: Callable[[int | None], None]


def get_log_path(folder: Path, host: str) -> Path:
    """Return the log file of a host by its display name: `python (sandboxed)` logs
    into `python-sandboxed.log`.
    """
    return folder / f"{host.replace(' (', '-').rstrip(')')}.log"
