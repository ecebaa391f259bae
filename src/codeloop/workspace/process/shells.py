"""Runs the commands of sessions; each session keeps its directory and environment between calls."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct

from codeloop.kit.processes import find_program
from codeloop.kit.small_files import read_start, write_atomically
from codeloop.schema.config import SandboxConfig
from codeloop.schema.limits import SHELL_INTERRUPT, SHELL_JOBS, SHELL_REPORT, SHELL_TIMEOUT
from codeloop.workspace.git.planted.repositories import PlantedRepositories
from codeloop.workspace.process.background import Job, Jobs
from codeloop.workspace.process.command import RunningCommand
from codeloop.workspace.process.output_buffer import OutputBuffer
from codeloop.workspace.process.shell_state import (
    ShellState,
    apply_changes,
    drop_bash_variables,
    find_changed_variables,
)
from codeloop.workspace.sandbox.policy import NO_GRANTS, PolicyInput, PolicyMaker, SandboxGrants, SandboxPolicy
from codeloop.workspace.sandbox.process_launcher import ProcessLauncher, protect_own_memory
from codeloop.workspace.sandbox.protected_files import MovedFile, ProtectedFiles
from codeloop.workspace.sandbox.refusals import find_proxy_mention, find_refusals, find_strayed_writes
from codeloop.workspace.sandbox.restricted_paths import SOCKET_VARIABLES
from codeloop.workspace.sandbox.sandboxes import Sandbox, Sandboxes

if TYPE_CHECKING:
    from codeloop.workspace.sandbox.network.host_proxy import SessionProxy

_SYSTEM = ("/opt/homebrew/bin/bash", "/usr/local/bin/bash", "/usr/bin/bash", "/bin/bash")
_SPARE = 3
"""How many times longer than before a command may take."""
_MOST_SLOW = 100
_NAME = 300
"""Characters of a command by which it is known again."""
_SLOW_FILE = 256 * 1024
_PLAIN = ("--noprofile", "--norc")
"""Options that keep bash from reading start-up files."""


class ShellContext(Struct, frozen=True):
    """Where a session's commands run. `session`: its id; the rest as in Workspace.

    `given`: variables set for each command, whatever earlier ones exported.
    """

    session: str
    directory: Path
    environment: Mapping[str, str]
    scratch: Path
    given: frozenset[str] = frozenset()


class ShellCommand(Struct, frozen=True):
    """One command. `directory`: where to run this one only; None: the session's own. `timeout`: seconds.

    `policy`: that of the sandbox to run it in; None: it runs as any program of the user's. `has_grants`: the sandbox
    opens more for it than for others, so what those exported must not steer it. `is_apart`: it leaves no directory
    and no variables to the next one.
    """

    text: str
    timeout: float
    directory: Path | None = None
    policy: SandboxPolicy | None = None
    has_grants: bool = False
    is_apart: bool = False


class CommandResult(Struct, frozen=True):
    """How a command ended.

    `output`: for the model, `recent`: for the screen. `code`: None when it was ended at its timeout (`timed_out`) or by
    a signal (`signal`, its name). `left`: how many processes it had left running, which were ended.
    `path`: the file with the whole output when `output` lacks something. `duration`: seconds. `lines`: of the whole
    output. `notes`: what the sandbox kept it from; `moved_files`: what appeared meanwhile and was moved away.
    """

    output: str
    recent: str
    code: int | None
    signal: str | None
    timed_out: bool
    left: int
    cut: bool
    path: Path | None
    duration: float
    lines: int
    notes: tuple[str, ...] = ()
    moved_files: tuple[MovedFile, ...] = ()
    warnings: tuple[str, ...] = ()


class Shells:
    """The shells of one project's sessions and their background jobs. `close` ends everything that still runs."""

    def __init__(self, timeout: float = SHELL_TIMEOUT.seconds) -> None:
        """`timeout`: that of commands which name none, in seconds."""
        self._timeout = timeout
        self.jobs = Jobs()
        self.launcher = ProcessLauncher()
        self.sandboxes = Sandboxes(self.launcher)
        self._refused_counts: WeakKeyDictionary[SessionProxy, dict[str, int]] = WeakKeyDictionary()
        self._own = set(SOCKET_VARIABLES)
        self._policy_makers: dict[tuple[Path, Path], PolicyMaker] = {}
        self._repositories: dict[Path, PlantedRepositories] = {}
        self._states: dict[str, ShellState] = {}
        self.warned: set[str] = set()
        """Warnings that the user was already shown, and notes that the model was."""
        self._slow: dict[Path, dict[str, float]] = {}
        """By the file that keeps them: seconds that commands took which may not fit into the usual timeout."""

    def directory(self, context: ShellContext) -> Path:
        """Return where the session's next command runs."""
        state = self._states.get(context.session)
        return state.directory if state is not None and os.access(state.directory, os.X_OK) else context.directory

    def list_changed_variables(self, context: ShellContext, *, outside: bool) -> dict[str, str]:
        """Return the variables that earlier commands of the session changed, as `changed_variables` does.

        `outside`: as a command that does not run in a sandbox gets them.
        """
        state = self._states.get(context.session, ShellState(context.directory))
        variables = state.unsandboxed_variables if outside else state.variables
        changed = find_changed_variables(variables, drop_bash_variables(context.environment))
        return {name: value for name, value in changed.items() if name not in self._own | context.given}

    def choose_timeout(self, context: ShellContext, command: str) -> float:
        """Return the timeout in ms of a command that names none: longer for one that took long before."""
        return 1000 * max(self._timeout, _SPARE * self._list_slow(context).get(_name_command(command), 0))

    def _list_slow(self, context: ShellContext) -> dict[str, float]:
        """Return how long slow commands of the project took, also in earlier processes."""
        file = _slow_file(context)
        if file not in self._slow:
            self._slow[file] = {}
            with suppress(OSError, msgspec.MsgspecError):
                self._slow[file] = msgspec.json.decode(read_start(file, _SLOW_FILE), type=dict[str, float])
        return self._slow[file]

    def _note_slow(self, context: ShellContext, command: str, seconds: float) -> None:
        slow = self._list_slow(context)
        slow.pop(command, None)
        slow[command] = seconds
        for name in [*slow][:-_MOST_SLOW]:
            del slow[name]
        with suppress(OSError):
            write_atomically(_slow_file(context), msgspec.json.encode(slow))

    def reset(self, session: str) -> None:
        """Reset the session's working directory and environment."""
        self._states.pop(session, None)

    async def run(
        self, context: ShellContext, command: ShellCommand, on_output: Callable[[str], None]
    ) -> CommandResult:
        """Run a command to its end or its timeout.

        `on_output` is called with the latest output while it runs, throttled, and once more on cancellation.
        Raises OSError when the shell or the directory can't be used; when cancelled, every process is ended first.
        """
        capture = OutputBuffer(context.scratch)
        try:
            running = await self._start(context, command, capture)
        except asyncio.CancelledError:
            on_output(capture.read_recent())
            raise
        began = time.monotonic()
        meter = _Meter(running.capture, on_output)
        running.on_output = meter.touch
        code, strays, timed_out = None, 0, False
        try:
            async with asyncio.timeout(command.timeout):
                code, strays = await running.finish()
        except TimeoutError:
            timed_out = True
            await running.stop(interrupt_seconds=SHELL_INTERRUPT.seconds)
        except asyncio.CancelledError:
            await running.stop()
            on_output(running.capture.read_recent())
            raise
        finally:
            meter.close()
        self._store_state(context, command, running.state())
        if time.monotonic() - began > self._timeout / _SPARE:
            self._note_slow(context, _name_command(command.text), time.monotonic() - began)
        output = running.capture.take()
        signal_name = _name_signal(code)
        return CommandResult(
            output=output.text,
            recent=output.printed,
            code=None if signal_name else code,
            signal=signal_name,
            timed_out=timed_out,
            left=strays,
            cut=output.is_cut,
            lines=running.capture.lines + (bool(output.printed) and not output.printed.endswith("\n")),
            path=output.path,
            duration=time.monotonic() - began,
            notes=running.take_notes(output.text, None if timed_out else code),
            moved_files=running.take_moved_files(),
            warnings=running.warnings(),
        )

    async def start(self, context: ShellContext, command: ShellCommand) -> Job:
        """Start a command in the background. Raises OSError as `run` does, ValueError when too many run."""
        if self.jobs.running() >= SHELL_JOBS.value:
            raise ValueError(
                f"{SHELL_JOBS.value} background commands are running already; stop one with bash_kill first"
            )
        running = await self._start(context, command, OutputBuffer(context.scratch, at_once=True))
        return self.jobs.add(context.session, command.text, running)

    @property
    def is_busy(self) -> bool:
        """Return whether a job runs in the background."""
        return bool(self.jobs.running())

    async def close(self) -> None:
        """End every job and whatever else any command left behind."""
        await self.jobs.close()
        await self.sandboxes.close()
        await self.launcher.close()
        for each in self._repositories.values():
            each.close()

    async def _start(self, context: ShellContext, command: ShellCommand, capture: OutputBuffer) -> RunningCommand:
        state = self._states.get(context.session, ShellState(context.directory))
        directory = command.directory or self.directory(context)
        protect_own_memory(context.environment)
        shell = find_shell(context.environment)
        variables = drop_bash_variables(context.environment)
        is_apart = command.policy is None or command.has_grants
        state = ShellState(directory, state.unsandboxed_variables if is_apart else state.variables)
        if command.policy is None:
            running = RunningCommand(command.text, capture)
            await running.start(self.launcher, shell, state, variables, self._own | context.given)
            return running
        async with self.sandboxes.hold_sandbox(command.policy) as sandbox:
            path = context.scratch.with_name("set-aside")
            repositories = await self.begin_repositories(command.policy)
            protected = ProtectedFiles(
                command.policy, path, repositories, remember_contents=sandbox.backend == "landlock"
            )
            running = RunningCommand(command.text, capture, protected)
            environment = await self.sandboxes.make_environment(sandbox, context.session, variables)
            names = environment.keys() | variables.keys()
            self._own |= {name for name in names if environment.get(name) != variables.get(name)}
            began = ShellState(directory, environment)
            since = self.sandboxes.read_file_time(sandbox)
            running.find_refusals = partial(self._find_refusals, context, sandbox, command.text, began, since)
            await running.start(sandbox.starter, shell, state, environment, self._own | context.given)
            return running

    def _find_refusals(
        self,
        context: ShellContext,
        sandbox: Sandbox,
        command: str,
        began: ShellState,
        since: int,
        output: str,
        code: int | None,
    ) -> list[str]:
        """Return a line for each thing that the sandbox refused, found in the output, the files and the proxy.

        `began`: where the command started and with which variables; `since`: when, as a file time in ns.
        """
        proxy, connections = self.sandboxes.find_proxy(sandbox), None
        if proxy is not None:
            seen = self._refused_counts.setdefault(proxy, {})
            connections = proxy.list_refused(context.session, seen.get(context.session, 0))
            seen[context.session] = proxy.refused_count
        home = Path(context.environment.get("HOME") or "/nonexistent")
        own = self.sandboxes.find_private_home(sandbox)
        notes = find_refusals(output, code, sandbox.policy, began.directory, home, connections, command)
        notes += find_strayed_writes(own, since) if own else []
        if connections == []:  # there is a proxy, and it refused nothing
            notes += find_proxy_mention(output, code, began.variables or {})
        return notes

    def make_policy(
        self, policy_input: PolicyInput, config: SandboxConfig, grants: SandboxGrants = NO_GRANTS
    ) -> SandboxPolicy:
        """Return the sandbox policy of a work tree's commands. Looks at the disk."""
        repositories = self._repositories.get(Path(os.path.realpath(policy_input.root)))
        more = repositories.list_protected_paths() if repositories is not None else ()
        return self._find_policy_maker(policy_input, config).make_policy(grants, more)

    def _find_policy_maker(self, policy_input: PolicyInput, config: SandboxConfig) -> PolicyMaker:
        key = (policy_input.root, policy_input.directory)
        policy_maker = self._policy_makers.get(key)
        if policy_maker is None or policy_maker.config != config:
            policy_maker = self._policy_makers[key] = PolicyMaker(policy_input, config)
        return policy_maker

    async def survey(self, policy_input: PolicyInput, config: SandboxConfig) -> None:
        """Scan a work tree before a command, in a thread: for repositories, the first time also for secrets.

        Its policy_maker protect them from then on.
        """
        policy_maker = self._find_policy_maker(policy_input, config)
        if not policy_maker.is_prepared:
            await asyncio.to_thread(policy_maker.prepare)
        root, directory = (Path(os.path.realpath(path)) for path in (policy_input.root, policy_input.directory))
        if root not in self._repositories:
            roots = (root,) if directory.is_relative_to(root) else (root, directory)
            planted_repositories = PlantedRepositories(
                roots, policy_input.scratch.with_name("set-aside"), policy_input.environment
            )
            await asyncio.to_thread(planted_repositories.begin_command)
            await asyncio.to_thread(planted_repositories.end_command)
            self._repositories.setdefault(root, planted_repositories)
        elif not self._repositories[root].count_if_unchanged(0):
            await asyncio.to_thread(self._repositories[root].record_state)

    async def begin_repositories(self, policy: SandboxPolicy) -> PlantedRepositories | None:
        """Record which repositories exist before a command under a policy; None where they were not scanned."""
        planted_repositories = self._repositories.get(policy.writable[0])
        if planted_repositories is not None and not planted_repositories.count_if_unchanged(1):
            await asyncio.to_thread(planted_repositories.begin_command)
        return planted_repositories

    def _store_state(self, context: ShellContext, command: ShellCommand, shell_state: ShellState | None) -> None:
        if shell_state is None or shell_state.variables is None or command.is_apart:
            return
        before = self._states.get(context.session, ShellState(context.directory))
        directory = shell_state.directory if command.directory is None else self.directory(context)
        inside, outside = shell_state.variables, before.unsandboxed_variables
        if command.policy is None or command.has_grants:
            began = drop_bash_variables(context.environment)
            inside = apply_changes(before.variables or began, outside or began, shell_state.variables)
        if command.policy is None:
            outside = shell_state.variables
        self._states[context.session] = ShellState(directory, inside, outside)


class _Meter:
    """Calls `show` with the latest output soon after a change, throttled."""

    def __init__(self, capture: OutputBuffer, show: Callable[[str], None]) -> None:
        self._capture = capture
        self._show = show
        self._timer: asyncio.TimerHandle | None = None

    def touch(self) -> None:
        """Note that there is more output."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SHELL_REPORT.seconds, self._fire)

    def close(self) -> None:
        """Stop showing."""
        if self._timer is not None:
            self._timer.cancel()

    def _fire(self) -> None:
        self._timer = None
        self._show(self._capture.read_recent())


def find_shell(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the shell's path and its options: bash, whatever shell the user prefers, since lines are read as bash's.

    Only where there is no bash, sh, about whose lines nothing is certain.
    """
    bash = next((path for path in _SYSTEM if os.access(path, os.X_OK)), None)
    if bash := bash or find_program("bash", environment.get("PATH")):
        return (bash, *_PLAIN)
    if os.access("/bin/sh", os.X_OK):
        return ("/bin/sh",)
    raise FileNotFoundError("no shell was found: neither bash, nor /bin/sh can be run; install bash")


def _slow_file(context: ShellContext) -> Path:
    """Return where the times of a project's slow commands are kept: commands in the sandbox can't write there."""
    return context.scratch.with_name(f"{context.scratch.name}.slow.json")


def _name_command(command: str) -> str:
    """Return a command without what its output is piped to, such as `| tail`."""
    return command.partition(" | ")[0].strip()[:_NAME]


def _name_signal(code: int | None) -> str | None:
    if code is None or code >= 0:
        return None
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
