"""Starts helper programs, each in its own sandbox, so that none shares a network or `/tmp` with another.

MCP servers and extensions are started here, and hooks, formatters and language servers with a sandbox of their own;
docs/decisions/0023 says why.
"""

from collections.abc import Callable
from pathlib import Path

from codeloop.schema.config import ProgramSandboxConfig, SandboxConfig
from codeloop.schema.wire import replace
from codeloop.workspace.sandbox.launched_process import Launch, LaunchedProcess
from codeloop.workspace.sandbox.policy import PolicyInput
from codeloop.workspace.sandbox.process_launcher import ProcessLauncher, protect_own_memory
from codeloop.workspace.sandbox.program_profile import ProfilePolicyMaker, ProgramProfile
from codeloop.workspace.sandbox.sandboxes import Sandboxes, SandboxUnavailable

_SESSION_ID = "program"
_REFUSAL_WARNING = (
    "No sandbox can be had on this machine, so {} run without one: as you. `codeloop debug sandbox` says why."
)


class ProgramSandboxes:
    """The sandboxes of a work tree's programs. `refusal_reason`: why this machine has no sandbox, once that is known.

    `warn` is called with a text for the user when one of the `programs` first runs without one for that reason.
    """

    def __init__(
        self, policy_input: PolicyInput, config: SandboxConfig, warn: Callable[[str], None], programs: str
    ) -> None:
        self.refusal_reason = ""
        self._input = policy_input
        self._config = config
        self._warn = warn
        self._programs = programs
        self._has_warned = False
        self._launcher = ProcessLauncher()
        self._sandboxes_by_folder: dict[Path, Sandboxes] = {}
        self._policy_makers: dict[ProgramProfile, ProfilePolicyMaker] = {}

    def is_sandboxed(self, entry: bool | ProgramSandboxConfig) -> bool:
        """Return whether a program with this configuration entry runs in a sandbox (or not at all), as far as known."""
        is_on = self._config.mode == "required" or (self._config.mode == "auto" and not self.refusal_reason)
        return entry is not False and is_on

    async def probe(self) -> None:
        """Find out whether a sandbox works by making one, unless that is known."""
        if self._sandboxes_by_folder or self.refusal_reason or self._config.mode == "off":
            return
        sandboxes = Sandboxes(self._launcher)
        try:
            await sandboxes.enter(self._find_policy_maker(ProgramProfile(self._input.scratch)).make_policy())
        except SandboxUnavailable as error:
            self.refusal_reason = str(error)
        finally:
            await sandboxes.close()

    async def start(self, launch: Launch, profile: ProgramProfile | None) -> LaunchedProcess:
        """Start a program in a sandbox; without one if `profile` is None, sandboxes are off, or none can be had.

        Raises OSError when it can't be started, and its subclass SandboxUnavailable when a sandbox is required.
        """
        protect_own_memory(launch.environment)
        if profile is not None and self.is_sandboxed(entry=True):
            try:
                return await self._start_sandboxed(launch, profile)
            except SandboxUnavailable as error:
                self.check_optional(error)
                self.refusal_reason = str(error)
        if profile is not None and self.refusal_reason:
            self.warn_once()
        return await self._launcher.start(launch)

    def check_optional(self, error: SandboxUnavailable) -> None:
        """Raise SandboxUnavailable, which says so, if the configuration requires the sandbox that can't be had."""
        if self._config.mode == "required":
            raise SandboxUnavailable(f"{error} The configuration requires one (sandbox).") from error

    def warn_once(self) -> None:
        """Warn the user, the first time, that programs run without a sandbox since none can be had."""
        if not self._has_warned:
            self._has_warned = True
            self._warn(_REFUSAL_WARNING.format(self._programs))

    async def _start_sandboxed(self, launch: Launch, profile: ProgramProfile) -> LaunchedProcess:
        sandboxes = self._sandboxes_by_folder.setdefault(profile.data_folder, Sandboxes(self._launcher))
        async with sandboxes.hold_sandbox(self._find_policy_maker(profile).make_policy()) as sandbox:
            environment = await sandboxes.make_environment(
                sandbox, _SESSION_ID, launch.environment, launch.named_variables
            )
            return await sandbox.starter.start(replace(launch, environment=environment))

    def _find_policy_maker(self, profile: ProgramProfile) -> ProfilePolicyMaker:
        policy_maker = self._policy_makers.get(profile)
        if policy_maker is None:
            policy_maker = self._policy_makers[profile] = ProfilePolicyMaker(profile, self._input, self._config)
        return policy_maker

    @property
    def is_busy(self) -> bool:
        """Always False: these programs wait for requests."""
        return False

    async def close(self) -> None:
        """End every program that was started, with its sandbox."""
        for sandboxes in self._sandboxes_by_folder.values():
            await sandboxes.close()
        await self._launcher.close()
