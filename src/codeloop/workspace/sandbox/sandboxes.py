"""The sandboxes of a work tree: one for each policy that commands have run under,
made when it is first needed.

`shells.py` runs commands in them. The backend (namespaces, bubblewrap, Landlock,
sandbox-exec) is chosen here.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from codeloop.schema.bounds.sandbox import SANDBOX_START
from codeloop.schema.limits import SANDBOXES_KEPT
from codeloop.workspace.sandbox.command_bounds import compute_bounds
from codeloop.workspace.sandbox.git_folders import GitFolders, PreparedGit
from codeloop.workspace.sandbox.launcher.usage_watch import Bounds
from codeloop.workspace.sandbox.paths.restricted_paths import OFFLINE_VARIABLES, SOCKET_VARIABLES
from codeloop.workspace.sandbox.plan_rows import (
    PlanFolders,
    adapt_policy,
    identify_files,
    list_guarded,
    list_plan_rows,
)
from codeloop.workspace.sandbox.policy import SandboxPolicy
from codeloop.workspace.sandbox.private_folders import (
    PrivateFolders,
    make_cache_variables,
    make_copying_variables,
)
from codeloop.workspace.sandbox.process_launcher import ProcessLauncher, ProcessStarter
from codeloop.workspace.sandbox.sandbox import (
    MOUNTING_BACKENDS,
    Backend,
    Sandbox,
    SandboxEnvironment,
    SandboxUnavailable,
)
from codeloop.workspace.sandbox.secret_variables import find_hidden_variables, hide_variables
from codeloop.workspace.sandbox.shortcomings import WHOLE_SYSTEM_REASON, is_whole_system
from codeloop.workspace.sandbox.temporary_folder import TemporaryFolder, make_temporary_folder

if TYPE_CHECKING:
    from codeloop.workspace.sandbox.network.session_proxy import SessionProxy

# Where other programs replace hidden files without pause, every second attempt or so succeeds.
_ATTEMPTS = 20
# A backend that does not answer in time so often in a row counts as one that hangs.
_SLOW_STARTS = 3
# In the order in which they are tried; docs/decisions/0019 says why bubblewrap comes second.
_BACKENDS_BY_SYSTEM: dict[str, tuple[Backend, ...]] = {
    "linux": ("namespaces", "bubblewrap", "landlock"),
    "darwin": ("sandbox-exec",),
}
BACKENDS = _BACKENDS_BY_SYSTEM.get(sys.platform, ())


class Sandboxes:
    """The sandboxes of one work tree. Those of namespaces without the machine's
    network share one network.

    `refused`: why each backend that was tried is unavailable; `git`: the private git folders, which
    are carried over after each command. Close them before the launcher.
    """

    def __init__(
        self,
        launcher: ProcessLauncher,
        backends: tuple[Backend, ...] = BACKENDS,
        bounds: Bounds | None = None,
    ) -> None:
        """`bounds`: those of each command; None: from the table of limits."""
        self.refused: dict[Backend, str] = {}
        # How often in a row the start of each backend was not waited for any longer.
        self._slow_starts: dict[Backend, int] = {}
        self._bounds = bounds or compute_bounds()
        self._launcher = launcher
        self._backends = backends
        self._base: ProcessStarter | None = None
        self._network: ProcessStarter | None = None
        self.git = GitFolders(
            PrivateFolders(), lambda: all(sandbox.starter.is_idle for sandbox in self._sandboxes)
        )
        self.temporary: TemporaryFolder | None = None
        """The folder that stands in the place of `/tmp`, once a sandbox was made."""
        self._sandboxes: list[Sandbox] = []
        self._proxies: dict[ProcessStarter | None, SessionProxy] = {}
        self._listed_hosts: tuple[str, ...] | None = None
        # Held while a sandbox is made: two tasks would make two of one policy,
        # and lose the network of one.
        self._entering = asyncio.Lock()

    @asynccontextmanager
    async def hold_sandbox(self, policy: SandboxPolicy) -> AsyncGenerator[Sandbox, None]:
        """Enter a sandbox, and keep it from being ended while the caller starts something in it.

        Raises SandboxUnavailable as `enter`.
        """
        sandbox = await self.enter(policy)
        with sandbox.starter.mark_busy():
            yield sandbox

    def find_sandbox(self, policy: SandboxPolicy) -> Sandbox | None:
        """Return the sandbox of a policy, or None.
        Its files may have been replaced since it was made.
        """
        return next(
            (
                sandbox
                for sandbox in self._sandboxes
                if sandbox.policy == policy and not sandbox.starter.is_lost
            ),
            None,
        )

    async def enter(self, policy: SandboxPolicy) -> Sandbox:
        """Return the sandbox of a policy, which is made and tested if there is none.

        It may be ended as soon as another one is entered; `hold_sandbox` prevents that. Raises
        SandboxUnavailable where no backend works.
        """
        async with self._entering:
            return await self._find_or_make(policy)

    async def _find_or_make(self, policy: SandboxPolicy) -> Sandbox:
        if self.temporary is not None and not self.temporary.path.is_dir():
            # Somebody cleaned up, and the mounts in it went with it.
            self.temporary.remove()
            self.temporary = None
        temporary = self.temporary = self.temporary or make_temporary_folder()
        can_mount = any(
            each in MOUNTING_BACKENDS and each not in self.refused for each in self._backends
        )
        git = await self.git.prepare(policy) if can_mount else PreparedGit()
        # A mount covers a file, not a path: where a file was replaced, the new one is not covered.
        identities = (str(temporary.path).encode(), *identify_files(policy), *git.identities)
        for sandbox in [sandbox for sandbox in self._sandboxes if sandbox.starter.is_lost]:
            self._sandboxes.remove(sandbox)
            await self._close_proxies(sandbox.starter)
        current = next(
            (
                sandbox
                for sandbox in self._sandboxes
                if sandbox.policy == policy and sandbox.identities == identities
            ),
            None,
        )
        if current is None:
            current = await self._make_sandbox(policy, git, temporary.path)
        else:
            self._sandboxes.remove(current)
        # The list is ordered by use, so that the loop ends the longest unused sandboxes first.
        self._sandboxes.append(current)
        for each in [
            sandbox
            for sandbox in self._sandboxes
            if sandbox is not current and sandbox.starter.is_idle
        ]:
            if each.policy == policy or len(self._sandboxes) > SANDBOXES_KEPT.value:
                self._sandboxes.remove(each)
                await self._close_proxies(each.starter)
                await each.starter.end()
        return current

    async def end_sandbox(self, policy: SandboxPolicy) -> None:
        """End the sandbox of a policy that no further command will run under."""
        async with self._entering:
            for each in [sandbox for sandbox in self._sandboxes if sandbox.policy == policy]:
                self._sandboxes.remove(each)
                await self._close_proxies(each.starter)
                await each.starter.end()

    def resolve_inside(self, sandbox: Sandbox, path: Path) -> Path | None:
        """Resolve a path as commands in a sandbox see it;
        None for what is in their private temporary folder.

        `path` is a resolved one of this machine. Looks at the disk,
        since links in the private folder lead out again.
        """
        if not sandbox.has_private_folders or self.temporary is None:
            return path
        return self.temporary.resolve(path, sandbox.policy)

    async def open_listener(self, port: int) -> socket.socket:
        """Open a socket that listens on 127.0.0.1 of the network that sandboxes share.
        Raises OSError.
        """
        return await (await self._start_network()).open_listener(port)

    def find_network(self, sandbox: Sandbox) -> ProcessStarter | None:
        """Return the starter in the network of a sandbox's commands; None: they have none."""
        if sandbox.backend not in MOUNTING_BACKENDS or sandbox.policy.network == "on":
            return None
        return sandbox.own_network or self._network

    async def rest(self) -> bool:
        """End every sandbox if nothing runs in any. Returns whether none is left."""
        async with self._entering:
            if all(sandbox.starter.is_idle for sandbox in self._sandboxes):
                # What the model has put there stays for its next turn.
                temporary, self.temporary = self.temporary, None
                await self.close()
                self.temporary = temporary
        return not self._sandboxes

    async def close(self) -> None:
        """End every sandbox with what runs in it."""
        await self._close_proxies()
        for sandbox in self._sandboxes:
            await sandbox.starter.end()
        self._sandboxes.clear()
        for each in (self._network, self._base):
            if each is not None:
                await each.end()
        self._network = self._base = None
        await self.git.close()
        self.git.private_folders.close()
        if self.temporary is not None:
            self.temporary.remove()
            self.temporary = None

    async def make_environment(
        self,
        sandbox: Sandbox,
        session: str,
        environment: Mapping[str, str],
        named_variables: Collection[str] = (),
    ) -> SandboxEnvironment:
        """Return the environment of a session's command in a sandbox,
        as `make_offline_environment` with a network.

        Raises OSError as `open_listener`.
        """
        made = self.make_offline_environment(sandbox, environment, named_variables)
        if sandbox.backend == "landlock":
            # It has no network of its own in which the proxy could listen.
            return made
        proxy = await self._start_proxy(sandbox, environment)
        if proxy is None:
            return made
        return made._replace(variables=made.variables | await proxy.make_environment(session))

    def make_offline_environment(
        self,
        sandbox: Sandbox,
        environment: Mapping[str, str],
        named_variables: Collection[str] = (),
    ) -> SandboxEnvironment:
        """Return the environment of a program in a sandbox,
        without secrets and without variables for a proxy.

        `named_variables`: as in Launch.
        """
        hidden = find_hidden_variables(sandbox.policy, environment, named_variables)
        variables = dict(OFFLINE_VARIABLES) if sandbox.policy.network == "off" else {}
        shown = hide_variables(environment, hidden).items()
        variables |= {name: value for name, value in shown if name not in SOCKET_VARIABLES}
        if sandbox.has_private_folders:
            return SandboxEnvironment(
                {**make_copying_variables(sandbox.policy), **variables}, hidden
            )
        folder = self.git.private_folders.find_folder(sandbox.policy)
        caches = (
            make_cache_variables(folder, sandbox.policy, environment) if folder is not None else {}
        )
        temporary = {"TMPDIR": str(self.temporary.path)} if self.temporary is not None else {}
        return SandboxEnvironment({**variables, **caches, **temporary}, hidden)

    def find_private_home(self, sandbox: Sandbox) -> Path | None:
        """Return the folder that is mounted as the home in a sandbox, or None."""
        folder = self.git.private_folders.find_folder(sandbox.policy)
        if folder is None or not sandbox.has_private_folders or sandbox.policy.home is None:
            return None
        return folder / sandbox.policy.home_name

    def find_proxy(self, sandbox: Sandbox) -> "SessionProxy | None":
        """Return the proxy of a sandbox; None if it has none, or it was not needed yet."""
        return self._proxies.get(sandbox.own_network)

    async def _start_proxy(
        self, sandbox: Sandbox, environment: Mapping[str, str]
    ) -> "SessionProxy | None":
        """Return the proxy to the policy's hosts, made if there is none; None: it lists no hosts.
        Raises OSError for an entry that names no host.
        """
        policy = sandbox.policy
        listed_hosts = policy.hosts if policy.network == "hosts" else None
        if self._listed_hosts != listed_hosts:
            # Connections to a host that is no longer listed must not go on.
            await self._close_proxies()
            self._listed_hosts = listed_hosts
        if listed_hosts is not None and sandbox.own_network not in self._proxies:
            # Imported here: most sandboxes have no proxy, and start faster without it.
            from codeloop.workspace.sandbox.network.session_proxy import SessionProxy
            from codeloop.workspace.sandbox.network.user_hosts import list_reachable_hosts

            hosts = list_reachable_hosts(listed_hosts, environment, policy.writable[0])
            listen = (
                sandbox.own_network.open_listener
                if sandbox.own_network is not None
                else self.open_listener
            )
            self._proxies[sandbox.own_network] = SessionProxy(hosts, environment, listen)
        return self.find_proxy(sandbox)

    async def _close_proxies(self, *networks: ProcessStarter | None) -> None:
        """Close the proxies of the given networks (None: the shared one);
        without any, all proxies.
        """
        for network in networks or tuple(self._proxies):
            if proxy := self._proxies.pop(network, None):
                await proxy.close()

    async def _make_sandbox(
        self, policy: SandboxPolicy, git: PreparedGit, temporary: Path
    ) -> Sandbox:
        if any(map(is_whole_system, policy.writable)):
            raise SandboxUnavailable(f"{WHOLE_SYSTEM_REASON[0].upper()}{WHOLE_SYSTEM_REASON[1:]}.")
        for backend in self._backends:
            if backend in self.refused:
                continue
            try:
                mounted = git if backend in MOUNTING_BACKENDS else PreparedGit()
                sandbox = await self._start_again(backend, policy, temporary, mounted)
            except TimeoutError:
                # The machine may be busy, so it is tried again: what is weaker, or nothing,
                # must not take its place.
                self._slow_starts[backend] = self._slow_starts.get(backend, 0) + 1
                works_here = any(sandbox.backend == backend for sandbox in self._sandboxes)
                if works_here or self._slow_starts[backend] < _SLOW_STARTS:
                    raise OSError(
                        f"its start took longer than {SANDBOX_START.seconds:.0f} s, on a busy machine"
                    ) from None
                self.refused[backend] = "it did not answer"
            except OSError as error:
                if any(sandbox.backend == backend for sandbox in self._sandboxes):
                    # The backend works here, so this policy is at fault: a file of it is gone,
                    # for example.
                    raise
                self.refused[backend] = str(error) or "it did not answer"
            else:
                self._slow_starts.pop(backend, None)
                return sandbox
        reasons = "; ".join(f"{backend}: {reason}" for backend, reason in self.refused.items())
        raise SandboxUnavailable(
            f"No sandbox can be had on this machine ({reasons or 'none is known for this system'})."
        )

    async def _start_again(
        self, backend: Backend, policy: SandboxPolicy, temporary: Path, git: PreparedGit
    ) -> Sandbox:
        """Make a sandbox by a backend; again while its files are replaced,
        as editors and installers do.

        Raises OSError and TimeoutError.
        """
        replaced: Path | None = None
        for _ in range(_ATTEMPTS):
            before = identify_files(policy)
            try:
                starter = await self._start_backend(backend, policy, temporary, git)
                identities = (str(temporary).encode(), *before, *git.identities)
                return Sandbox(backend, policy, starter, identities, git)
            except OSError:
                pairs = zip(list_guarded(policy), before, identify_files(policy), strict=True)
                replaced = next((path for path, old, new in pairs if old != new), None)
                if replaced is None:
                    raise
        raise OSError(
            f"{replaced} can't be kept from commands, since another program replaces it again and again. "
            "Try again when that program has ended"
        )

    async def _start_backend(
        self, backend: Backend, policy: SandboxPolicy, temporary: Path, git: PreparedGit
    ) -> ProcessStarter:
        """Make a sandbox by a backend, and return its starter. Raises OSError and TimeoutError."""
        private = self.git.private_folders.claim_folder(policy)
        folders = PlanFolders(temporary, private and private.path, git)
        policy = adapt_policy(backend, policy, folders)
        rows = list_plan_rows(backend, policy, folders, self._bounds)
        if backend == "bubblewrap":
            from codeloop.workspace.sandbox.backends.bubblewrap import MountedFolders, wrap_command

            mounted_folders = MountedFolders(temporary, folders.private, git.mounts)
            wrap = partial(wrap_command, policy=policy, mounted_folders=mounted_folders)
            return await self._launcher.make_wrapped_sandbox(wrap, rows)
        if backend == "sandbox-exec":
            from codeloop.workspace.sandbox.backends.seatbelt import SeatbeltStarter

            starter = SeatbeltStarter(self._launcher, policy, temporary)
            await starter.check_confinement(rows)
            return starter
        if backend == "landlock":
            return await self._launcher.make_sandbox(rows)
        base = await (self._start_base() if policy.network == "on" else self._start_network())
        return await base.make_sandbox(rows, () if private is None else (private.lock,))

    async def _start_base(self) -> ProcessStarter:
        """Return the starter of the base namespace, in which the caches get their layers
        once for all sandboxes.
        """
        if self._base is None or self._base.is_lost:
            self._base = await self._launcher.make_sandbox(["kind base"])
        return self._base

    async def _start_network(self) -> ProcessStarter:
        if self._network is None or self._network.is_lost:
            # The proxy listens in the network that is lost.
            await self._close_proxies(None)
            self._network = await (await self._start_base()).make_sandbox(["kind network"])
        return self._network
