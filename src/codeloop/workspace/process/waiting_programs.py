"""Finds and ends programs of a command that wait for keys that nobody can press.

Without a terminal and with an empty stdin, some editors (vi, vim) take their output for their
keyboard. Nothing can ever be read from it, so such a program would wait for ever. It is recognised
by that alone, whatever it is called.
"""

import asyncio
import os
import signal
import stat
from contextlib import ExitStack, suppress
from pathlib import Path

from codeloop.kit.processes import read_start_time

_PROC = Path("/proc")
# In seconds. Later looks are rarer: what takes this long is hardly an editor.
_FIRST_LOOK = 1.0
_LONGEST_PAUSE = 30.0
# Where a process has one of its command's pipes: its output,
# or the one that shows by its end that none is left.
_KNOWN_FDS = (0, 1, 2, 99)
# An editor that saves what it has on TERM may stay; the next look kills it.
_NOTE = (
    "{names} waited for keys, which nobody can press here, and was ended. Change files with the tools edit and write, "
    "or name a program that does it: `EDITOR=PROGRAM`, `git -c core.editor=PROGRAM`."
)


async def end_waiting_programs(pipes: frozenset[int], notes: list[str]) -> None:
    """Look again and again for programs of a command that read from a pipe that can
    only be written, and end them.

    `pipes`: the inodes of the pipes by which the command's processes are known. A note for the
    model is added to `notes`. Runs until it is cancelled.
    """
    names_by_inode = frozenset(f"pipe:[{inode}]" for inode in pipes)
    pause = _FIRST_LOOK
    asked: set[tuple[int, str]] = set()
    while True:
        await asyncio.sleep(pause)
        if await asyncio.to_thread(_end_readers, names_by_inode, asked, notes):
            pause = _FIRST_LOOK
        else:
            pause = min(pause * 2, _LONGEST_PAUSE)


def _end_readers(pipes: frozenset[str], asked: set[tuple[int, str]], notes: list[str]) -> bool:
    """End each process that waits for input that can't come; return whether there was one.

    `asked`: ids and start times of those that had a TERM, which are killed; new ones are added.
    """
    with ExitStack() as stack:
        names: dict[int, str] = {}
        signals: dict[int, signal.Signals] = {}
        for process in _PROC.iterdir() if _PROC.is_dir() else ():
            # Another user's process, or one that has ended.
            with suppress(OSError):
                if not process.name.isdecimal() or not _waits_in_vain(process, pipes):
                    continue
                pidfd = os.pidfd_open(int(process.name))
                stack.callback(os.close, pidfd)
                # The id may be another process's by now.
                if _waits_in_vain(process, pipes):
                    identity = (int(process.name), read_start_time(int(process.name)))
                    signals[pidfd] = signal.SIGKILL if identity in asked else signal.SIGTERM
                    if identity not in asked:
                        asked.add(identity)
                        names[pidfd] = (process / "comm").read_text(errors="replace").strip()
        # First, as the command may end at once.
        if names:
            notes.append(_NOTE.format(names=", ".join(sorted(set(names.values())))))
        for pidfd, number in signals.items():
            with suppress(OSError):
                signal.pidfd_send_signal(pidfd, number)
    return bool(signals)


def _waits_in_vain(process: Path, pipes: frozenset[str]) -> bool:
    """Return whether a process's stdin is the writing end of a pipe, and it is one of the
    command's. Raises OSError.
    """
    folder = process / "fd"
    stdin = folder / "0"
    if stdin.lstat().st_mode & stat.S_IRUSR or not os.readlink(stdin).startswith("pipe:"):
        return False
    return any(
        (folder / str(fd)).is_symlink() and os.readlink(folder / str(fd)) in pipes
        for fd in _KNOWN_FDS
    )
