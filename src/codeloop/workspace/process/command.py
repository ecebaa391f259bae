"""A command running in a shell: its processes, its output and the state that its shell leaves."""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from pathlib import Path

from codeloop.schema.limits import SHELL_GRACE, SHELL_STATE
from codeloop.workspace.files.saved_outputs import save_output
from codeloop.workspace.process.child_process import Pipe
from codeloop.workspace.process.output_buffer import OutputBuffer
from codeloop.workspace.process.shell_state import ShellState, parse_exports
from codeloop.workspace.sandbox.process_launcher import (
    MARK_VARIABLE,
    Launch,
    LaunchedProcess,
    ProcessStarter,
    finish_uncancelled,
)
from codeloop.workspace.sandbox.protected_files import MovedFile, ProtectedFiles

# `$1`: the command. On exit the shell writes its directory and its exports to a separate pipe. The programs that
# it starts do not have that one, so none of them can write in the shell's name: it is closed while the command runs.
# Bash keeps it under the first free number then, which programs do not inherit; an exit within a function finds it
# there. On one line, so that the shell's own messages count the command's lines from one.
_STATE, _STATE_COPY = 98, 10
_ALIVE = 99
"""The descriptor of a pipe that stays open while anything that the command started still runs."""
_WRITE = """{{ unset {own}; printf "%s\\0" "$PWD"; export -p; printf "\\0"; }}"""
_BASH = (
    """_codeloop=$1; set --; """
    f"""trap 'for _codeloop in {_STATE} {_STATE_COPY}; do {_WRITE} >&$_codeloop && break; done 2>/dev/null' EXIT; """
    f"""{{{{ eval "$_codeloop"; }}}} {_STATE}>&-"""
)
_SH = f"""_codeloop=$1; set --; trap '{_WRITE} >/dev/fd/{_STATE} 2>/dev/null' EXIT; eval "$_codeloop\""""
"""For shells without such descriptors: there any program can write the state."""
_LONGEST = 100_000  # bytes: Linux allows 128 KiB in one argument


class RunningCommand:
    """One command. `start` it first; `finish` waits for its natural end, `stop` ends it.

    `protected`: files restored afterwards. `find_refusals` finds in output, with the exit code, what the
    command was kept from.
    """

    def __init__(self, text: str, capture: OutputBuffer, protected: ProtectedFiles | None = None) -> None:
        self.capture = capture
        self.find_refusals: Callable[[str, int | None], list[str]] = lambda _output, _code: []
        self._notes: list[str] = []
        self._moved_files: list[MovedFile] = []
        self._warnings: list[str] = []
        self._protected = protected
        self.on_output: Callable[[], None] | None = None
        self._text = text
        self._unread = bytearray()
        self._pipes = (Pipe(self._print), Pipe(self._keep), Pipe(lambda _chunk: None))
        self._file: Path | None = None
        self._child: LaunchedProcess | None = None

    async def start(
        self,
        starter: ProcessStarter,
        shell: tuple[str, ...],
        state: ShellState,
        environment: Mapping[str, str],
        own: Collection[str] = (),
    ) -> None:
        """Start it in the previous shell's directory, with what that had exported, or with `environment`.

        `own`: the variables that depend on where a command runs, and so are never carried over. Raises OSError when
        the shell can't be started.
        """
        with ExitStack() as on_failure:
            on_failure.callback(self._give_up)
            variables = environment
            if state.variables is not None:
                variables = {**state.variables, **{name: environment[name] for name in own if name in environment}}
            name = Path(shell[0]).name
            script = (_BASH if name == "bash" else _SH).format(own=" ".join((MARK_VARIABLE, *own)))
            arguments = [*shell, "-c", script, name, self._make_argument()]
            output, state_pipe, alive = (pipe.writer for pipe in self._pipes)
            descriptors = {1: output, 2: output, _STATE: state_pipe, _ALIVE: alive}
            self._child = await starter.start(Launch(arguments, state.directory, variables, descriptors))
            on_failure.pop_all()
        for pipe in self._pipes:
            pipe.listen()

    async def finish(self) -> tuple[int, int]:
        """Wait for the shell's exit. Returns its code (negative: the signal) and how many processes it left running.

        Those get a short grace period, then they are ended.
        """
        child = self._running
        code = await asyncio.shield(child.exited)
        count = 0 if await self._wait_until_silent() else await child.end()
        self._close()
        await finish_uncancelled(self._restore_files())
        return code, count

    async def stop(self, *, interrupt_seconds: float = 0) -> None:
        """End every process of the command, TERM first, then KILL; finishes even when cancelled.

        `interrupt_seconds`: the time between an interrupt (INT) and TERM, in which it may end by itself.
        """
        try:
            await finish_uncancelled(self._running.end(interrupt_seconds=interrupt_seconds))
        finally:
            self._close()
            await finish_uncancelled(self._restore_files())

    @property
    def _running(self) -> LaunchedProcess:
        if self._child is None:
            raise ValueError("the command was not started")
        return self._child

    def state(self) -> ShellState | None:
        """Return the state that the shell left; None when it was killed, or replaced itself, before writing it."""
        if self._unread.count(b"\0") != 2 or not self._unread.endswith(b"\0") or len(self._unread) > SHELL_STATE.value:
            return None
        directory, output, _ = bytes(self._unread).split(b"\0")
        return ShellState(Path(os.fsdecode(directory)), parse_exports(os.fsdecode(output)))

    def take_moved_files(self) -> tuple[MovedFile, ...]:
        """Return the planted files that were moved away while it ran, each once."""
        stashed, self._moved_files = self._moved_files, []
        return tuple(stashed)

    def warnings(self) -> tuple[str, ...]:
        """Return a warning for each planted file that was moved away, each once."""
        texts, self._warnings = self._warnings, []
        return tuple(texts)

    def take_notes(self, output: str, code: int | None) -> tuple[str, ...]:
        """Return the sandbox's refusals not yet reported: found in the output, and in the files that were put back.

        `code`: the exit code; None while it runs, and for one that was ended.
        """
        notes, self._notes = self._notes, []
        if self._child is not None and (limit := self._child.exceeded):
            self._child.exceeded = ""
            notes.insert(0, f"The command was ended: it used more than {limit}, which is all that it may here.")
        return (*self.find_refusals(output, code), *notes)

    async def _wait_until_silent(self) -> bool:
        """Return whether all pipes end within the grace: then no process that could write to them is left."""
        open_ends = [pipe.ended for pipe in self._pipes if not pipe.ended.done()]
        if open_ends:
            await asyncio.wait(open_ends, timeout=SHELL_GRACE.seconds)
        return all(pipe.ended.done() for pipe in self._pipes)

    def _make_argument(self) -> str:
        command = self._text
        if len(command) < _LONGEST // 4 or len(command.encode("utf-8", "surrogateescape")) < _LONGEST:
            return command
        self._file = save_output(self.capture.folder, command.encode("utf-8", "surrogateescape"))
        return f'. "{self._file}"'

    def _print(self, chunk: bytes) -> None:
        self.capture.feed(chunk)
        if self.on_output is not None:
            self.on_output()

    def _keep(self, chunk: bytes) -> None:
        if len(self._unread) <= SHELL_STATE.value:
            self._unread += chunk

    def _close(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        self.capture.close()
        if self._file is not None:
            self._file.unlink(missing_ok=True)
            self._file = None

    def _give_up(self) -> None:
        self._close()
        if self._protected is not None:
            self._protected.restore()
            self._protected = None

    async def _restore_files(self) -> None:
        """Restore protected files and check what it made, in a thread where that may be a lot."""
        protected, self._protected = self._protected, None
        if protected is not None:
            is_quick = protected.is_quick()
            self._notes += protected.restore() if is_quick else await asyncio.to_thread(protected.restore)
            self._moved_files += protected.moved_files
            self._warnings += protected.warnings
