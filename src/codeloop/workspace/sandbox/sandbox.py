"""The sandboxes of a work tree: one for each policy that commands have run under, made when it is first needed."""

import asyncio
import os
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from codeloop.kit.git import make_git_settings
from codeloop.kit.small_files import remove_tree
from codeloop.schema.limits import SANDBOX_MEMORY, SANDBOX_PROCESSES, SANDBOXES_KEPT
from codeloop.schema.wire import replace
from codeloop.workspace.sandbox.launcher.libc import identify_file
from codeloop.workspace.sandbox.launcher.usage_watch import Bounds
from codeloop.workspace.sandbox.locations import SOCKETS
from codeloop.workspace.sandbox.policy import SandboxPolicy
from codeloop.workspace.sandbox.private_folders import (
    HOME,
    OWN_CACHES,
    PrivateFolders,
    make_cache_variables,
    make_layer_name,
    make_linking_variables,
)
from codeloop.workspace.sandbox.process_launcher import Forker, ProcessLauncher

_TEMPORARY = tuple(Path("/", name) for name in ("tmp", "var/tmp"))
"""Folders that are private to sandboxed commands."""
_CONTAINER_MEMORY = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_CONTAINER_PROCESSES = ("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max")
_MAX_LINKS = 40
"""How many links Linux follows in one path before it fails with ELOOP."""
_NO_UPKEEP = {"gc.auto": "0", "maintenance.auto": "false"}
"""Settings of git where packs are read-only: its upkeep would fail, and leave that in the repository's `gc.log`."""
Backend = Literal["namespaces", "bubblewrap", "landlock", "sandbox-exec"]
# In the order in which they are tried; docs/decisions/0019 says why bubblewrap comes second.
_BACKENDS_BY_SYSTEM: dict[str, tuple[Backend, ...]] = {
    "linux": ("namespaces", "bubblewrap", "landlock"),
    "darwin": ("sandbox-exec",),
}
BACKENDS = _BACKENDS_BY_SYSTEM.get(sys.platform, ())


class AllowedHosts(Protocol):
    """The proxy that lets commands reach some hosts: `network.HostNetwork`, imported when needed."""

    @property
    def count(self) -> int:
        """How many connections were refused so far."""
        ...

    async def environment(self, session: str) -> dict[str, str]:
        """Return the variables that point a session's commands to it."""
        ...

    def list_refused(self, session: str, after: int) -> list[str]:
        """Return the refused connections of a session's commands since the count was `after`."""
        ...

    async def close(self) -> None:
        """Cut every connection."""
        ...


class SandboxRefused(OSError):
    """No sandbox works on this machine; the text says what was tried."""


class Sandbox(Struct, frozen=True):
    """A working sandbox.

    `backend`: what enforces it; `forker` starts programs in it; `identities`: of the files at its paths when it was
    made, which show whether one was replaced since.
    """

    backend: Backend
    policy: SandboxPolicy
    forker: Forker
    identities: tuple[bytes, ...]

    @property
    def network(self) -> Forker | None:
        """Return the forker of its network; None: it uses the network that sandboxes share."""
        # A network namespace can't be handed to bubblewrap, which starts as another user.
        return self.forker if self.backend in {"bubblewrap", "sandbox-exec"} else None

    @property
    def replaces_temporary(self) -> bool:
        """Return whether private folders replace `/tmp`, the home and caches; else variables point to some."""
        return self.backend in {"namespaces", "bubblewrap"}

    @property
    def lack(self) -> str:
        """Return why commands in it need permission as if there were no sandbox; "" where it protects.

        Landlock can't hide a file in a writable project. Start-up files of the user's shell lie in the home.
        """
        if self.policy.holds_home:
            return "the project holds your home, with all that your own programs start from"
        if self.backend == "landlock" and self.policy.has_secrets:
            return "it can't hide the secrets of this project (.env and the like)"
        return ""

    @property
    def holds(self) -> bool:
        """Return whether commands in it need no question."""
        return not self.lack


class Sandboxes:
    """The sandboxes of one work tree. Those without access to the machine's network share one network of their own.

    `refused`: why each backend that was tried is unavailable. Close it before its launcher.
    """

    def __init__(
        self, launcher: ProcessLauncher, backends: tuple[Backend, ...] = BACKENDS, bounds: Bounds | None = None
    ) -> None:
        """`bounds`: of each command; None: those of the table of limits."""
        self.refused: dict[Backend, str] = {}
        self._bounds = bounds or _default_bounds()
        self._launcher = launcher
        self._backends = backends
        self._base: Forker | None = None
        self._network: Forker | None = None
        self._private = PrivateFolders()
        self._temporary: Path | None = None
        self._open: list[Sandbox] = []
        self._hosts: dict[Forker | None, AllowedHosts] = {}
        self._allowed_hosts: tuple[str, ...] | None = None
        self._entering = asyncio.Lock()
        """Held while the first sandbox is made: two tasks would make two, and lose the network of one."""

    @asynccontextmanager
    async def use(self, policy: SandboxPolicy) -> AsyncGenerator[Sandbox, None]:
        """Hold a sandbox while something is started in it, so that it is not ended meanwhile.

        Raises SandboxRefused as `enter`.
        """
        sandbox = await self.enter(policy)
        with sandbox.forker.mark_busy():
            yield sandbox

    def find(self, policy: SandboxPolicy) -> Sandbox | None:
        """Return the sandbox that was made for a policy, whose files may have been replaced since."""
        return next((one for one in self._open if one.policy == policy and not one.forker.is_lost), None)

    async def enter(self, policy: SandboxPolicy) -> Sandbox:
        """Return a sandbox for a policy. Each one is tested when it is made.

        It may be ended when another is entered, unless a start in it has begun: use `use` to hold it.
        Raises SandboxRefused where no backend works.
        """
        async with self._entering:
            return await self._enter_alone(policy)

    async def _enter_alone(self, policy: SandboxPolicy) -> Sandbox:
        # A mount covers a file, not a path: where a file was replaced, the new one is not covered.
        identities = _identify_paths(policy)
        for sandbox in [one for one in self._open if one.forker.is_lost]:
            self._open.remove(sandbox)
            await self._forget_hosts(sandbox.forker)
        sandbox_found = next((one for one in self._open if one.policy == policy and one.identities == identities), None)
        if sandbox_found is None:
            sandbox_found = await self._make(policy, identities)
        else:
            self._open.remove(sandbox_found)
        self._open.append(sandbox_found)  # ordered by use: the loop below ends the longest unused ones first
        for each in [one for one in self._open if one is not sandbox_found and one.forker.is_idle]:
            if each.policy == policy or len(self._open) > SANDBOXES_KEPT.value:
                self._open.remove(each)
                await self._forget_hosts(each.forker)
                await each.forker.end()
        return sandbox_found

    async def leave(self, policy: SandboxPolicy) -> None:
        """End the sandbox of a policy that no further command will run under."""
        async with self._entering:
            for each in [one for one in self._open if one.policy == policy]:
                self._open.remove(each)
                await self._forget_hosts(each.forker)
                await each.forker.end()

    def resolve_inside(self, sandbox: Sandbox, path: Path) -> Path | None:
        """Resolve a path as commands in a sandbox see it; None for what is in their private temporary folder.

        `path` is a resolved one of this machine. Looks at the disk, since links in the private folder lead out again.
        """
        policy = sandbox.policy
        for _ in range(_MAX_LINKS):
            top = next((each for each in _TEMPORARY if path.is_relative_to(each)), None)
            seen = [*policy.writable, *policy.layered, *policy.visible, *policy.replaced]
            is_seen = any(path.is_relative_to(each) or each.is_relative_to(path) for each in seen)
            if not sandbox.replaces_temporary or self._temporary is None or top is None or is_seen:
                return path
            resolved = Path(os.path.realpath(self._temporary / path.relative_to(top)))
            if resolved.is_relative_to(self._temporary):
                return None
            path = resolved
        return None

    async def listener(self, port: int) -> socket.socket:
        """Return a socket that listens on 127.0.0.1 of the network that sandboxes share. Raises OSError."""
        return await (await self._own_network()).listener(port)

    async def close(self) -> None:
        """End every sandbox with what runs in it."""
        await self._forget_hosts()
        for sandbox in self._open:
            await sandbox.forker.end()
        self._open.clear()
        for each in (self._network, self._base):
            if each is not None:
                await each.end()
        self._network = self._base = None
        self._private.close()
        if self._temporary is not None:
            remove_tree(self._temporary)
            self._temporary = None

    async def environment(self, sandbox: Sandbox, session: str, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a session's command in a sandbox. Raises OSError as `listener`."""
        variables = self.own_environment(sandbox, environment)
        if sandbox.backend == "landlock":
            return variables  # it has no network of its own in which the proxy could listen
        hosts = await self._allow_hosts(sandbox, environment)
        variables |= {} if hosts is None else await hosts.environment(session)
        return variables | (make_git_settings(_NO_UPKEEP, variables) if sandbox.policy.foreign else {})

    def own_environment(self, sandbox: Sandbox, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of our own program in a sandbox: without variables that point to a network."""
        variables = {name: value for name, value in environment.items() if name not in SOCKETS}
        if sandbox.replaces_temporary:
            return {**make_linking_variables(sandbox.policy), **variables}
        folder = self._private.find_folder(sandbox.policy)
        caches = make_cache_variables(folder, sandbox.policy, environment) if folder is not None else {}
        return {**variables, **caches, "TMPDIR": str(self._temporary)}

    def private_home(self, sandbox: Sandbox) -> Path | None:
        """Return the folder that replaces the home of a sandbox's commands, or None."""
        folder = self._private.find_folder(sandbox.policy)
        has_one = folder is not None and sandbox.replaces_temporary and sandbox.policy.home is not None
        return folder / HOME if has_one and folder is not None else None

    def file_time_now(self, sandbox: Sandbox) -> int:
        """Return the time as files of a sandbox would get it now, in ns; 0 where it has no folder of its own."""
        return self._private.file_time_now(sandbox.policy)

    def hosts(self, sandbox: Sandbox) -> AllowedHosts | None:
        """Return the host network of a sandbox; None when it was not needed yet, or has none."""
        return self._hosts.get(sandbox.network)

    async def _allow_hosts(self, sandbox: Sandbox, environment: Mapping[str, str]) -> AllowedHosts | None:
        """Return the proxy to the policy's hosts; None if it lists none. Another list closes the earlier proxy.

        Raises OSError for an entry that names no host.
        """
        policy = sandbox.policy
        hosts_listed = policy.hosts if policy.network == "hosts" else None
        if self._allowed_hosts != hosts_listed:
            await self._forget_hosts()  # connections to a host that is no longer listed must not go on
            self._allowed_hosts = hosts_listed
        if hosts_listed is not None and sandbox.network not in self._hosts:
            home, root = Path(environment.get("HOME") or "/nonexistent"), policy.writable[0]
            from codeloop.workspace.sandbox.network.host_network import HostNetwork
            from codeloop.workspace.sandbox.network.hosts import read_hosts
            from codeloop.workspace.sandbox.network.user_hosts import find_user_hosts

            try:
                hosts = read_hosts(hosts_listed, find_user_hosts(home, environment, root))
            except ValueError as error:
                raise OSError(0, f"the hosts of the sandbox are wrong: {error}") from None
            listen = sandbox.network.listener if sandbox.network is not None else self.listener
            self._hosts[sandbox.network] = HostNetwork(hosts, environment, listen)
        return self.hosts(sandbox)

    async def _forget_hosts(self, *networks: Forker | None) -> None:
        """Close the proxies of all networks or of these."""
        for network in networks or tuple(self._hosts):
            if hosts := self._hosts.pop(network, None):
                await hosts.close()

    async def _make(self, policy: SandboxPolicy, identities: tuple[bytes, ...]) -> Sandbox:
        if self._temporary is None:
            self._temporary = Path(os.path.realpath(tempfile.mkdtemp(prefix="codeloop-")))
        for backend in self._backends:
            if backend in self.refused:
                continue
            try:
                return Sandbox(backend, policy, await self._enter(backend, policy, self._temporary), identities)
            except (OSError, TimeoutError) as error:
                if any(sandbox.backend == backend for sandbox in self._open):
                    raise  # the backend works here, so the fault is this policy's: a file of it is gone, for example
                self.refused[backend] = str(error) or "it did not answer"
        reasons = "; ".join(f"{backend}: {reason}" for backend, reason in self.refused.items())
        raise SandboxRefused(f"No sandbox can be had on this machine ({reasons or 'none is known for this system'}).")

    async def _enter(self, backend: Backend, policy: SandboxPolicy, temporary: Path) -> Forker:
        private = self._private.take(policy)
        if backend in {"landlock", "sandbox-exec"} and private is not None:
            # These backends have no overlays: layered folders are read-only, and variables lead tools to `own` instead.
            visible, own = (*policy.visible, *policy.layered), private.path / OWN_CACHES
            policy = replace(policy, writable=(*policy.writable, own), visible=visible, layered=())
        rows = [f"kind {backend}", f"network {'on' if policy.network == 'on' else 'off'}"]
        rows += [f"temporary {temporary}", f"home {policy.home or ''}"]
        rows += [f"processes {self._bounds.processes}", f"memory {self._bounds.memory}"]
        for name in ("writable", "protected", "visible", "hidden", "replaced"):
            rows += [f"{name} {path}" for path in getattr(policy, name)]
        rows += [f"protected {path}" for path in policy.foreign]
        rows += [row for path, target in policy.links for row in (f"link {path}", f"target {target}")]
        rows += [f"replica {policy.replica}"] if policy.replica is not None else []
        if private is not None:
            rows += [f"private {private.path}", *(f"layered {make_layer_name(path)} {path}" for path in policy.layered)]
        if backend == "bubblewrap":
            from codeloop.workspace.sandbox.bubblewrap import OwnFolders, wrap

            own = OwnFolders(temporary, private and private.path)
            hidden = [path for path in policy.hidden if os.path.lexists(path)]
            wrap_command = partial(wrap, policy=policy, own=own)
            try:
                return await self._launcher.enter_by(wrap_command, rows)
            except OSError:
                if all(map(os.path.lexists, hidden)):
                    raise
                # A hidden file, such as a socket, was removed before it was covered: `wrap` looks at the disk again.
                return await self._launcher.enter_by(wrap_command, rows)
        if backend == "sandbox-exec":
            from codeloop.workspace.sandbox.seatbelt import SeatbeltForker

            forker = SeatbeltForker(self._launcher, policy, temporary)
            await forker.prove(rows)
            return forker
        if backend == "landlock":
            return await self._launcher.enter(rows)
        base = await (self._own_base() if policy.network == "on" else self._own_network())
        return await base.enter(rows, () if private is None else (private.lock,))

    async def _own_base(self) -> Forker:
        """Return the base namespace, in which the caches are layered once for all sandboxes."""
        if self._base is None or self._base.is_lost:
            self._base = await self._launcher.enter(["kind base"])
        return self._base

    async def _own_network(self) -> Forker:
        if self._network is None or self._network.is_lost:
            await self._forget_hosts(None)  # the proxy listens in the network that is lost
            self._network = await (await self._own_base()).enter(["kind network"])
        return self._network


def _identify_paths(policy: SandboxPolicy) -> tuple[bytes, ...]:
    """Return the identity of each file that a policy's paths name now."""
    return tuple(identify_file(path) for path in (*policy.writable, *policy.protected, *policy.foreign, *policy.hidden))


def _default_bounds() -> Bounds:
    """Return one command's limits of processes and memory, from those of the machine or the container."""
    memory = read_least(_CONTAINER_MEMORY, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    # Half of what a container may have: with more, nothing of ours could be started to end the command.
    processes = read_least(_CONTAINER_PROCESSES, 2 * SANDBOX_PROCESSES.value) // 2
    return Bounds(processes, memory * SANDBOX_MEMORY.value // 100)


def read_least(paths: Sequence[str], most: int) -> int:
    """Return the least number in these files, at most `most`; missing files are skipped."""
    numbers = [most]
    for path in paths:
        try:
            numbers.append(int(Path(path).read_text(encoding="ascii")))
        except (OSError, ValueError):  # "max" is no number
            continue
    return min(numbers)
