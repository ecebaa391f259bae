"""One running shell command: its processes, its output, and the state of its shell at the end.

`shells.py` makes one for each command of a session;
`background_jobs.py` keeps those that run in the background.
"""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from codeloop.kit.child_process import Launch, Pipe, finish_uncancelled
from codeloop.kit.programs import find_program
from codeloop.schema.limits import SHELL_GRACE, SHELL_STATE
from codeloop.workspace.files.saved_outputs import save_output
from codeloop.workspace.process.output_buffer import OutputBuffer
from codeloop.workspace.process.shell_state import ShellState, parse_exports
from codeloop.workspace.process.waiting_programs import end_waiting_programs
from codeloop.workspace.sandbox.launched_process import LaunchedProcess
from codeloop.workspace.sandbox.launcher.descendants import MARK_VARIABLE
from codeloop.workspace.sandbox.process_launcher import ProcessStarter
from codeloop.workspace.sandbox.protected_files import MovedFile, ProtectedFiles

# How the scripts below work. `$1` is the command. On exit the shell writes its directory and its
# exports to a separate pipe. It is closed while the command runs, so that no program can write
# there in the shell's name. Bash keeps it under the first free number meanwhile, which programs do
# not inherit; an exit within a function finds it there.
# All is on one line, so that the shell's own messages count the command's lines from one.
_STATE_FD, _STATE_COPY_FD = 98, 10
# The pipe at this descriptor stays open while anything that the command started still runs.
_ALIVE_FD = 99
_WRITE_STATE = """{{ unset {own}; printf "%s\\0" "$PWD"; export -p; printf "\\0"; }}"""
_BASH_SCRIPT = (
    """_codeloop=$1; set --; """
    f"""trap 'for _codeloop in {_STATE_FD} {_STATE_COPY_FD}; do {_WRITE_STATE} >&$_codeloop && break; done """
    """2>/dev/null' EXIT; """
    f"""{{{{ eval "$_codeloop"; }}}} {_STATE_FD}>&-"""
)
_SH_SCRIPT = f"_codeloop=$1; set --; trap '{_WRITE_STATE} >/dev/fd/{_STATE_FD} 2>/dev/null' EXIT; eval \"$_codeloop\""
"""For shells that keep no such copy: there any program can write the state."""
# Bash writes its state in a piece a variable. It is read once the shell has ended,
# or so long after the first piece.
_STATE_PAUSE_SECONDS = 0.005
# Linux allows 128 KiB in one argument. A longer command is sourced from a file.
_MAX_ARGUMENT_BYTES = 100_000
_BASH_PATHS = ("/opt/homebrew/bin/bash", "/usr/local/bin/bash", "/usr/bin/bash", "/bin/bash")
# They keep bash from reading start-up files, which could print, be slow,
# or change how lines are parsed.
_BASH_OPTIONS = ("--noprofile", "--norc")


class RunningCommand:
    """One command. Call `start` first, then `finish` to wait for its natural end,
    or `stop` to end it.

    `buffer`: collects its output; `on_output`: called after each piece of it. `protected`: files
    that are restored afterwards, and where its changes in git folders are carried over from.
    `find_refusals`: called with the output and the exit code,
    returns notes about refusals of the sandbox.
    """

    def __init__(
        self,
        text: str,
        buffer: OutputBuffer,
        protected: ProtectedFiles | None = None,
    ) -> None:
        self.buffer = buffer
        self.find_refusals: Callable[[str, int | None], list[str]] = lambda _output, _code: []
        self._notes: list[str] = []
        self._moved_files: list[MovedFile] = []
        self._warnings: list[str] = []
        self._protected = protected
        self.on_output: Callable[[], None] | None = None
        self.on_background: Callable[[], None] = lambda: None
        """Called when it begins to run in the background."""
        self.text = text
        self._state_output = bytearray()
        # For the output, for the state of the shell, and one that shows by its end
        # that no process is left.
        self._pipes = (
            Pipe(self._take_output),
            Pipe(self._take_state, pause_seconds=_STATE_PAUSE_SECONDS),
            Pipe(lambda _chunk: None),
        )
        # The file with a command that is too long for an argument.
        self._file: Path | None = None
        self._child: LaunchedProcess | None = None
        self._stop_watch: Callable[[], None] = lambda: None
        self._editor_watch: asyncio.Task[None] | None = None

    async def start(
        self,
        starter: ProcessStarter,
        shell: tuple[str, ...],
        state: ShellState,
        environment: Mapping[str, str],
        local_variables: Collection[str] = (),
    ) -> None:
        """Start it with the directory and variables of `state`,
        or with `environment` if that has no variables.

        `local_variables`: names of variables that depend on where a command runs: they come from
        `environment`, and are never carried over. Raises OSError when the shell can't be started.
        """
        with ExitStack() as on_failure:
            on_failure.callback(self._clean_up_failed_start)
            variables = environment
            if state.variables is not None:
                variables = {
                    **state.variables,
                    **{name: environment[name] for name in local_variables if name in environment},
                }
            name = Path(shell[0]).name
            script = (_BASH_SCRIPT if name == "bash" else _SH_SCRIPT).format(
                own=" ".join((MARK_VARIABLE, *local_variables))
            )
            arguments = [*shell, "-c", script, name, self._make_argument()]
            output, state_pipe, alive = (pipe.writer for pipe in self._pipes)
            descriptors = {1: output, 2: output, _STATE_FD: state_pipe, _ALIVE_FD: alive}
            self._child = await starter.start(
                Launch(arguments, state.directory, variables, descriptors)
            )
            on_failure.pop_all()
        own_pipes = frozenset((self._pipes[0].inode, self._pipes[2].inode))
        self._editor_watch = asyncio.create_task(end_waiting_programs(own_pipes, self._notes))
        for pipe in self._pipes:
            pipe.listen()
        if self._protected is not None:
            self._stop_watch = self._protected.watch_names(self._protected.move_new_files)

    async def finish(self) -> tuple[int, int]:
        """Wait for the shell's exit. Return its code (negative:
        the signal) and the number of processes left running.

        These get a short time to end by themselves, then they are ended.
        """
        child = self._running
        code = await asyncio.shield(child.exited)
        leftover_processes = 0 if await self._wait_until_silent() else await child.end()
        self._close()
        await finish_uncancelled(self._restore_files())
        return code, leftover_processes

    async def finish_within(
        self, seconds: float, find_more_time: Callable[[], float]
    ) -> tuple[int, int] | None:
        """Wait as `finish` does, for `seconds` and those that `find_more_time` adds then; None:
        it still runs.
        """
        for time_limit in (seconds, find_more_time):
            with suppress(TimeoutError):
                async with asyncio.timeout(time_limit() if callable(time_limit) else time_limit):
                    return await self.finish()
        return None

    async def stop(self, *, interrupt_seconds: float = 0) -> None:
        """End every process of the command by TERM, then KILL. Completes even when cancelled.

        `interrupt_seconds`: the time between an interrupt (INT) and TERM,
        in which it may end by itself.
        """
        try:
            await finish_uncancelled(self._running.end(interrupt_seconds=interrupt_seconds))
        finally:
            self._close()
            await finish_uncancelled(self._restore_files())

    @property
    def was_refused_network(self) -> bool:
        """Whether it tried to use a network that its sandbox lacks,
        as far as that is noticed (Landlock alone).
        """
        return self._child is not None and self._child.was_refused_network

    @property
    def _running(self) -> LaunchedProcess:
        if self._child is None:
            raise ValueError("the command was not started")
        return self._child

    def find_state(self) -> ShellState | None:
        """Return the state of the shell at its end; None if it was killed,
        or replaced itself (`exec`), before that.
        """
        # The script writes the directory, a NUL, the exports and another NUL.
        # Anything else did not come from it.
        if (
            self._state_output.count(b"\0") != 2
            or not self._state_output.endswith(b"\0")
            or len(self._state_output) > SHELL_STATE.value
        ):
            return None
        directory, output, _ = bytes(self._state_output).split(b"\0")
        return ShellState(Path(os.fsdecode(directory)), parse_exports(os.fsdecode(output)))

    def take_moved_files(self) -> tuple[MovedFile, ...]:
        """Return the files that were moved away since the last call."""
        moved_files, self._moved_files = self._moved_files, []
        return tuple(moved_files)

    def take_warnings(self) -> tuple[str, ...]:
        """Return the warnings about moved files since the last call."""
        warnings, self._warnings = self._warnings, []
        early = self._protected.take_early_warning() if self._protected is not None else ""
        return (*warnings, *([early] if early else []))

    def add_warning(self, warning: str) -> None:
        """Add a warning for the user and the model, which `take_warnings` returns."""
        self._warnings.append(warning)

    def take_notes(self, output: str, code: int | None) -> tuple[str, ...]:
        """Return notes on refusals of the sandbox, on files restored since the last call,
        and on an exceeded limit.

        `code`: the exit code; None while it runs, and if it was ended.
        """
        notes = [*self._notes]
        self._notes.clear()
        if self._child is not None and (limit := self._child.exceeded):
            self._child.exceeded = ""
            notes.insert(
                0,
                f"The command was ended: it used more than {limit}, which is all that it may here.",
            )
        return (*self.find_refusals(output, code), *notes)

    async def _wait_until_silent(self) -> bool:
        """Wait a short time for the end of all pipes. Return whether they ended:
        then no process of it is left.
        """
        for pipe in self._pipes:
            pipe.read_now()
        pending_ends = [pipe.ended for pipe in self._pipes if not pipe.ended.done()]
        if pending_ends:
            await asyncio.wait(pending_ends, timeout=SHELL_GRACE.seconds)
        return all(pipe.ended.done() for pipe in self._pipes)

    def _make_argument(self) -> str:
        """Return the command, or a line that reads it from a file if it is
        too long for an argument.
        """
        command = self.text
        if (
            len(command) < _MAX_ARGUMENT_BYTES // 4
            or len(command.encode("utf-8", "surrogateescape")) < _MAX_ARGUMENT_BYTES
        ):
            return command
        self._file = save_output(self.buffer.folder, command.encode("utf-8", "surrogateescape"))
        return f'. "{self._file}"'

    def _take_output(self, chunk: bytes) -> None:
        self.buffer.feed(chunk)
        if self.on_output is not None:
            self.on_output()

    def _take_state(self, chunk: bytes) -> None:
        if len(self._state_output) <= SHELL_STATE.value:
            self._state_output += chunk

    def _close(self) -> None:
        if self._editor_watch is not None:
            self._editor_watch.cancel()
        for pipe in self._pipes:
            pipe.close()
        self.buffer.close()
        if self._file is not None:
            self._file.unlink(missing_ok=True)
            self._file = None

    def _clean_up_failed_start(self) -> None:
        self._close()
        if self._protected is not None:
            self._protected.restore()
            self._protected = None

    async def _restore_files(self) -> None:
        """Carry over what it changed in git folders, restore protected files and check new ones."""
        protected, self._protected = self._protected, None
        if protected is None:
            return
        self._stop_watch()
        self._notes += await protected.settle()
        self._moved_files += protected.moved_files
        self._warnings += protected.warnings


def find_shell(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the path and options of bash; without bash, those of sh. Raises FileNotFoundError.

    The user's preferred shell is not used: the permission gate parses lines as bash does.
    """
    usual_path = next((path for path in _BASH_PATHS if os.access(path, os.X_OK)), None)
    bash = usual_path or find_program("bash", environment.get("PATH"))
    if bash:
        return (bash, *_BASH_OPTIONS)
    if os.access("/bin/sh", os.X_OK):
        return ("/bin/sh",)
    raise FileNotFoundError(
        "no shell was found: neither bash, nor /bin/sh can be run; install bash"
    )
