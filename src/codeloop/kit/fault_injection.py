"""Faults on demand, for tests: `CODELOOP_FAULT=name:nth:action` makes the
program fail at a named point.

Without the variable every point is a call of a function that does nothing (some 40 ns),
chosen once, at import.
Each process counts for itself. `kill` and `delay` happen at the nth time that the point is reached,
`enospc` and `eio` from then on, as a full disk stays full.
"""

import errno
import os
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Literal, TypeGuard

from msgspec import Struct

FAULT_VARIABLE = "CODELOOP_FAULT"
POINT_DESCRIPTIONS = {
    "migration": "before each statement of a migration, inside its transaction",
    "migration.backup": "a backup of the old database is whole, and does not have its name yet",
    "session.create": "before a new session is stored",
    "prompt.store": "before a prompt is stored",
    "store.begin": "before a transaction begins",
    "store.outbox": "inside a transaction: the state of an event is in, its row in the outbox not yet",
    "store.commit": "a transaction is stored, its followers have not been told",
    "step.start": "an answer's header is stored, the request not sent",
    "step.delta": "a piece of text or reasoning has come",
    "step.call_ready": "a call's arguments are complete, the call has not started",
    "call.start": "a call is stored as running, the tool has done nothing",
    "call.effect": "a tool has done its work, its result is not stored",
    "call.result": "a call's result is stored",
    "step.finish": "an answer and its calls are complete, the step's end is not stored",
    "compaction.start": "a summary is begun, the request not sent",
    "compaction.summary": "a summary has come, it is not stored",
    "compaction.done": "a summary is stored, what the turn continues with is not",
    "recover": "before what a crash left open is closed",
    "files.write.before": "new bytes lie beside a file, which is still the old one",
    "files.write.after": "a file is the new one, the other files of the same change perhaps not",
    "worktree.record": "it is stored that a work tree is being made, nothing of it is there",
    "worktree.checkout": "git has made a work tree, nothing was copied there",
    "worktree.ready": "a work tree is whole, which is not stored",
    "worktree.commit": "before what is uncommitted in a work tree is committed",
    "worktree.merge": "a merge is made, the branch is where it was",
    "worktree.remove": "it is stored that a work tree is being removed, all of it is there",
    "worktree.removed": "a work tree is gone, which is not stored",
    "move.stored": "it is stored that a session is moved, its turn may still run",
    "move.stopped": "a session that is moved does nothing any more, nothing is written",
    "move.written": "the file of a moved session is whole, and does not have its name yet",
    "move.named": "the file of a moved session has its name, the session is not archived",
    "move.unpacked": "the files of a moved session are in a work tree, the session is not stored there",
    "snapshot": "before the work tree is looked through for a snapshot",
}
"""Every point by name, and the state of the program there."""
INTERRUPTIBLE_DELAY_SECONDS = 30.0
"""A `delay` at a point where the program can be interrupted; Ctrl-C ends it at once."""
BLOCKING_DELAY_SECONDS = 0.1
"""A `delay` at a point where the program can't be interrupted, as on a slow disk."""

Action = Literal["kill", "enospc", "eio", "delay"]
ACTIONS: tuple[Action, ...] = ("kill", "enospc", "eio", "delay")


class FaultVariableError(ValueError):
    """The variable does not name a fault; the message says what it takes."""


class Fault(Struct):
    """One fault, and how often its point has been reached so far."""

    name: str
    nth: int
    action: Action
    hits: int = 0

    def pass_point(self, name: str, /) -> None:
        """Pass a point; raises OSError if this is where the disk is to fail."""
        if self._count_hit(name):
            if self.action == "delay":
                time.sleep(BLOCKING_DELAY_SECONDS)
            self._strike()

    async def pass_point_async(self, name: str, /) -> None:
        """Pass a point where the program can be interrupted; raises as `pass_point` does."""
        if self._count_hit(name):
            if self.action == "delay":
                # Imported here, since runs that await nothing need no event loop.
                import asyncio

                await asyncio.sleep(INTERRUPTIBLE_DELAY_SECONDS)
            self._strike()

    def _count_hit(self, name: str) -> bool:
        if name != self.name:
            return False
        self.hits += 1
        return self.hits == self.nth or (self.hits > self.nth and self.action in {"enospc", "eio"})

    def _strike(self) -> None:
        match self.action:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "enospc":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            case "eio":
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            case "delay":
                pass


def parse_fault(text: str) -> Fault:
    """Read `name:nth:action`, nth from 1. Raises FaultVariableError."""
    name, nth, action = (*text.split(":"), "", "")[:3]
    if name not in POINT_DESCRIPTIONS:
        raise FaultVariableError(
            f"{FAULT_VARIABLE}={text}: there is no point {name!r}; the points are: {', '.join(POINT_DESCRIPTIONS)}"
        )
    if not nth.isascii() or not nth.isdigit() or int(nth) < 1:
        raise FaultVariableError(
            f"{FAULT_VARIABLE}={text}: {nth!r} is not a count; give 1 for the first time, 2 for the second, ..."
        )
    if not _is_action(action) or text.count(":") != 2:
        raise FaultVariableError(
            f"{FAULT_VARIABLE}={text}: it takes name:nth:action, the action one of {', '.join(ACTIONS)}"
        )
    return Fault(name, int(nth), action)


def _is_action(text: str) -> TypeGuard[Action]:
    return text in ACTIONS


def find_variable_error() -> str:
    """Return the error in the variable, which the program reports before it does anything;
    "": there is none.
    """
    try:
        _read_fault()
    except FaultVariableError as error:
        return str(error)
    return ""


def _read_fault() -> Fault | None:
    text = os.environ.get(FAULT_VARIABLE)
    return parse_fault(text) if text else None


def _do_nothing(_: str, /) -> None:
    """Pass a point."""


async def _do_nothing_async(_: str, /) -> None:
    """Pass a point."""


_fault = None if find_variable_error() else _read_fault()
pass_point: Callable[[str], None] = _fault.pass_point if _fault else _do_nothing
pass_point_async: Callable[[str], Awaitable[None]] = (
    _fault.pass_point_async if _fault else _do_nothing_async
)
