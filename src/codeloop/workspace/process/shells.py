"""Runs the shell commands of sessions, each in its own shell.
A session keeps its directory and variables.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from msgspec import Struct

from codeloop.schema.config import SandboxConfig
from codeloop.schema.limits import SHELL_INTERRUPT, SHELL_JOBS
from codeloop.workspace.git.planted.quarantine import locate_quarantine
from codeloop.workspace.process.background_jobs import Job, Jobs
from codeloop.workspace.process.command_result import CommandResult, take_result
from codeloop.workspace.process.output_buffer import OutputBuffer, OutputThrottle
from codeloop.workspace.process.running_command import RunningCommand, find_shell
from codeloop.workspace.process.scanned_work_trees import ScannedWorkTrees
from codeloop.workspace.process.shell_state import ShellState, apply_changes, find_changed_variables
from codeloop.workspace.process.slow_commands import SlowCommands
from codeloop.workspace.process.unattended_variables import make_command_environment
from codeloop.workspace.sandbox.git_folders import GitFolders
from codeloop.workspace.sandbox.name_watch import NameWatch
from codeloop.workspace.sandbox.network.proxy_variables import PROXY_VARIABLES
from codeloop.workspace.sandbox.paths.restricted_paths import SOCKET_VARIABLES
from codeloop.workspace.sandbox.policy import NO_GRANTS, PolicyInput, SandboxGrants, SandboxPolicy
from codeloop.workspace.sandbox.process_launcher import (
    ProcessLauncher,
    ProcessStarter,
    protect_own_memory,
)
from codeloop.workspace.sandbox.protected_files import NO_WATCH, ProtectedFiles, SandboxWatch
from codeloop.workspace.sandbox.refusals import ASK_OUTSIDE, SandboxedStart, find_all_refusals
from codeloop.workspace.sandbox.sandbox import Sandbox
from codeloop.workspace.sandbox.sandboxes import Sandboxes
from codeloop.workspace.sandbox.secret_variables import (
    HIDDEN_VARIABLE_TEXT,
    explain_hidden_variable,
    find_wanted_variables,
    hide_variables,
)
from codeloop.workspace.tool_bounds import USUAL_BOUNDS, ToolBounds

if TYPE_CHECKING:
    from codeloop.workspace.sandbox.network.published_ports import PublishedPorts
    from codeloop.workspace.sandbox.network.session_proxy import SessionProxy

# A command may take this many times as long as it took before.
_TIMEOUT_FACTOR = 3


class ShellContext(Struct, frozen=True):
    """The place where a session's commands run. `session`: its id;
    the other fields as in Workspace.

    `pinned_variables`: the names of variables that come from `environment` for each command,
    whatever earlier ones exported.
    """

    session: str
    directory: Path
    environment: Mapping[str, str]
    scratch: Path
    pinned_variables: frozenset[str] = frozenset()


class ShellCommand(Struct, frozen=True):
    """One command. `directory`: for this command only; None: the session's. `timeout`: in seconds.

    `policy`: the policy of its sandbox; None: it runs without one. `watch`: see SandboxWatch.
    `has_grants`: its sandbox allows more than those of other commands, so variables that these
    exported must not steer it.
    `is_isolated`: its directory and variables are not passed to the next command. `goes_on`: at its
    timeout it becomes a background command; else it is ended. `publishes_ports`: the user reaches
    the ports that it listens on in the background. `find_more_time`: called at the timeout,
    returns further seconds.
    """

    text: str
    timeout: float
    directory: Path | None = None
    policy: SandboxPolicy | None = None
    watch: SandboxWatch = NO_WATCH
    has_grants: bool = False
    is_isolated: bool = False
    goes_on: bool = False
    publishes_ports: bool = False
    find_more_time: Callable[[], float] = lambda: 0


class Shells:
    """The shells of one project's sessions and their background jobs.
    `close` ends everything that still runs.

    It also has the work tree's sandboxes, makes their policies and watches the repositories that
    these protect, for programs other than shells too (`sandboxed_program.py`).
    """

    def __init__(self, bounds: ToolBounds = USUAL_BOUNDS) -> None:
        self._bounds = bounds
        self._timeout = bounds.timeout_ms / 1000
        self.jobs = Jobs()
        self.launcher = ProcessLauncher()
        self.sandboxes = Sandboxes(self.launcher)
        self._refused_counts: WeakKeyDictionary[SessionProxy, dict[str, int]] = WeakKeyDictionary()
        self._sandbox_variables = set(SOCKET_VARIABLES)
        self._work_trees = ScannedWorkTrees(self.launcher)
        self._names = NameWatch()
        self._states: dict[str, ShellState] = {}
        self._published_ports: WeakKeyDictionary[ProcessStarter, PublishedPorts] = (
            WeakKeyDictionary()
        )
        self.warned: set[str] = set()
        """Warnings that were already shown to the user, and notes that were shown to the model."""
        self._slow_commands = SlowCommands()

    def get_directory(self, context: ShellContext) -> Path:
        """Return the directory of the session's next command."""
        state = self._states.get(context.session)
        # A command may have removed its directory.
        if state is None or not os.access(state.directory, os.X_OK):
            return context.directory
        return state.directory

    def list_changed_variables(
        self, context: ShellContext, *, is_unsandboxed: bool
    ) -> dict[str, str]:
        """Return the variables that earlier commands changed ("": unset),
        or only those outside of the sandbox.
        """
        state = self._states.get(context.session, ShellState(context.directory))
        variables = state.unsandboxed_variables if is_unsandboxed else state.variables
        changed = find_changed_variables(variables, make_command_environment(context.environment))
        return {
            name: value
            for name, value in changed.items()
            if name not in self._sandbox_variables | context.pinned_variables
        }

    def choose_timeout_ms(self, context: ShellContext, command: str) -> float:
        """Return the timeout in ms of a command that has none: longer for a command
        that took long before.
        """
        return 1000 * max(
            self._timeout,
            _TIMEOUT_FACTOR * self._slow_commands.find_seconds(context.scratch, command),
        )

    def find_directory(self, session: str) -> Path | None:
        """Return the directory that a session's commands have led to; None: none has run yet."""
        state = self._states.get(session)
        return None if state is None else state.directory

    def reset(self, session: str) -> None:
        """Reset the session's working directory and environment."""
        self._states.pop(session, None)

    async def run(
        self, context: ShellContext, command: ShellCommand, on_output: Callable[[str], None]
    ) -> CommandResult:
        """Run a command to its end or its timeout. Raises OSError when the shell or
        the directory can't be used.

        `on_output` is called with the latest output, throttled.
        When cancelled, it is called once more.
        """
        buffer = OutputBuffer(context.scratch, self._bounds)
        try:
            try:
                running = await self._start(context, command, buffer)
            except BrokenPipeError:
                # What starts commands ended just now, before it took this one: there is a new one.
                running = await self._start(context, command, buffer)
        except asyncio.CancelledError:
            on_output(buffer.read_recent())
            raise
        start_time = time.monotonic()
        throttle = OutputThrottle(running.buffer, on_output)
        running.on_output = throttle.notify
        job = None
        try:
            end = await running.finish_within(command.timeout, command.find_more_time)
            if end is None and command.goes_on and self.jobs.count_running() < SHELL_JOBS.value:
                buffer.keep_whole()
                job = self.jobs.add(context.session, command.text, running, start_time=start_time)
            elif end is None:
                await running.stop(interrupt_seconds=SHELL_INTERRUPT.seconds)
        except asyncio.CancelledError:
            await running.stop()
            on_output(running.buffer.read_recent())
            raise
        finally:
            throttle.close()
        if job is None:
            self._store_state(context, command, running.find_state())
        duration = time.monotonic() - start_time
        if duration > self._timeout / _TIMEOUT_FACTOR:
            self._slow_commands.record(context.scratch, command.text, duration)
        return take_result(running, end, duration, job.id if job is not None else "")

    async def start(self, context: ShellContext, command: ShellCommand) -> Job:
        """Start a command in the background. Raises OSError as `run` does,
        ValueError when too many run.
        """
        if self.jobs.count_running() >= SHELL_JOBS.value:
            raise ValueError(
                f"{SHELL_JOBS.value} background commands are running already; stop one with bash_output first"
            )
        running = await self._start(
            context, command, OutputBuffer(context.scratch, self._bounds, opens_file=True)
        )
        return self.jobs.add(context.session, command.text, running)

    @property
    def is_busy(self) -> bool:
        """Whether a job runs in the background."""
        return bool(self.jobs.count_running())

    def _publish_ports(self, network: ProcessStarter) -> None:
        """Let the user reach the ports that background commands listen on in
        a network of sandboxes.
        """
        # Imported late: few commands run in the background.
        from codeloop.workspace.sandbox.network.published_ports import PublishedPorts

        published = self._published_ports.get(network)
        if published is None:
            published = PublishedPorts(
                network, lambda: bool(self.jobs.count_running()), self.jobs.change_ports
            )
            self._published_ports[network] = published
        published.start()

    async def close(self) -> None:
        """End every job and all other processes of commands."""
        await self.jobs.close()
        for published in self._published_ports.values():
            await published.close()
        await self.sandboxes.close()
        self._names.close()
        self._work_trees.end_cleaning()
        await self.launcher.close()
        self._work_trees.close()

    async def _start(
        self, context: ShellContext, command: ShellCommand, buffer: OutputBuffer
    ) -> RunningCommand:
        """Start a command in a new shell that continues the session's state. Raises OSError."""
        state = self._states.get(context.session, ShellState(context.directory))
        directory = command.directory or self.get_directory(context)
        protect_own_memory(context.environment)
        shell = find_shell(context.environment)
        variables = make_command_environment(context.environment)
        is_privileged = command.policy is None or command.has_grants
        state = ShellState(
            directory, state.unsandboxed_variables if is_privileged else state.variables
        )
        if command.policy is None:
            running = RunningCommand(command.text, buffer)
            await running.start(
                self.launcher,
                shell,
                state,
                variables,
                self._sandbox_variables | context.pinned_variables,
            )
            return running
        async with self.sandboxes.hold_sandbox(command.policy) as sandbox:
            quarantine = locate_quarantine(context.scratch)
            protected = await self.protect(sandbox, self.sandboxes.git, quarantine, command.watch)
            running = RunningCommand(command.text, buffer, protected)
            while self._work_trees.recovered:
                running.add_warning(self._work_trees.recovered.pop())
            environment, hidden = await self.sandboxes.make_environment(
                sandbox, context.session, variables, context.pinned_variables
            )
            self._note_sandbox_variables(environment, variables)
            if state.variables is not None:
                # A command outside the sandbox may have exported one.
                state = ShellState(directory, hide_variables(state.variables, hidden))
            start = SandboxedStart(
                context.session,
                sandbox,
                command.text,
                directory,
                environment,
                hidden.keys() - set(PROXY_VARIABLES),
                self.sandboxes.git.private_folders.measure_file_clock(sandbox.policy),
            )
            if (
                command.publishes_ports
                and (network := self.sandboxes.find_network(sandbox)) is not None
            ):
                running.on_background = partial(self._publish_ports, network)
            running.find_refusals = partial(self._find_refusals, start, running)
            await running.start(
                sandbox.starter,
                shell,
                state,
                environment,
                self._sandbox_variables | context.pinned_variables,
            )
            return running

    def _note_sandbox_variables(
        self, environment: Mapping[str, str], variables: Mapping[str, str]
    ) -> None:
        """Note the names of the variables that a sandbox changes: no command has changed these.
        `environment`: in the sandbox; `variables`: without one.
        """
        self._sandbox_variables |= {
            name
            for name in environment.keys() | variables.keys()
            if environment.get(name) != variables.get(name)
        }

    def _find_refusals(
        self, start: SandboxedStart, running: RunningCommand, output: str, code: int | None
    ) -> list[str]:
        """Return a note for each refusal of the sandbox;
        warn the user once of each hidden variable that is wanted.
        """
        proxy, connections = self.sandboxes.find_proxy(start.sandbox), None
        if proxy is not None:
            seen = self._refused_counts.setdefault(proxy, {})
            connections = proxy.list_refused(start.session, seen.get(start.session, 0))
            seen[start.session] = proxy.refused_count
        wanted = find_wanted_variables(start.command, output, code, start.hidden)
        for name in wanted:
            if name not in self.warned:
                self.warned.add(name)
                running.add_warning(explain_hidden_variable(name))
        home = self.sandboxes.find_private_home(start.sandbox)
        notes = find_all_refusals(
            start, output, code, connections, home, was_refused_network=running.was_refused_network
        )
        return [
            *notes,
            *(f"blocked: {name}, {HIDDEN_VARIABLE_TEXT}. {ASK_OUTSIDE}" for name in wanted),
        ]

    def make_policy(
        self, policy_input: PolicyInput, config: SandboxConfig, grants: SandboxGrants = NO_GRANTS
    ) -> SandboxPolicy:
        """Return the sandbox policy of a work tree's commands. Reads the disk."""
        return self._work_trees.make_policy(policy_input, config, grants)

    async def scan_work_tree(self, policy_input: PolicyInput, config: SandboxConfig) -> None:
        """Scan a work tree before a command, in a thread: for repositories,
        and the first time also for secrets.

        Policies that are made later protect them.
        """
        await self._work_trees.scan(policy_input, config)

    async def protect(
        self,
        sandbox: Sandbox,
        git: GitFolders,
        quarantine: Path,
        watch: SandboxWatch,
        *,
        is_lasting: bool = False,
    ) -> ProtectedFiles:
        """Record what a program in a sandbox may not change, to restore it afterwards.

        `git`: the private git folders of the sandboxes that this one belongs to. `is_lasting`: it
        may run as long as the session, in which new repositories are mostly the user's: those are
        not checked, and protected files are not restored.
        """
        repositories = None if is_lasting else await self._work_trees.begin_command(sandbox)
        return ProtectedFiles(
            sandbox, quarantine, repositories, git, self._names, watch=watch, is_lasting=is_lasting
        )

    def _store_state(
        self, context: ShellContext, command: ShellCommand, shell_state: ShellState | None
    ) -> None:
        """Store the state of a command's shell at its end for the session's next commands."""
        if shell_state is None or shell_state.variables is None or command.is_isolated:
            return
        before = self._states.get(context.session, ShellState(context.directory))
        directory = (
            shell_state.directory if command.directory is None else self.get_directory(context)
        )
        sandboxed_variables, unsandboxed_variables = (
            shell_state.variables,
            before.unsandboxed_variables,
        )
        # This command did not start with the variables of sandboxed commands: only its own
        # changes are added to those.
        if command.policy is None or command.has_grants:
            initial = make_command_environment(context.environment)
            sandboxed_variables = apply_changes(
                before.variables or initial, unsandboxed_variables or initial, shell_state.variables
            )
        if command.policy is None:
            unsandboxed_variables = shell_state.variables
        self._states[context.session] = ShellState(
            directory, sandboxed_variables, unsandboxed_variables
        )
