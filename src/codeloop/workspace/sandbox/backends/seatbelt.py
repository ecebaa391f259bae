"""Translates a policy into a profile of `sandbox-exec` (macOS), and starts each command under it.

`sandboxes.py` imports it on macOS only. A profile is a list of rules by path; it mounts nothing.
"""

import errno
import os
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.child_process import Launch
from codeloop.schema.wire import replace
from codeloop.workspace.sandbox.launched_process import LaunchedProcess
from codeloop.workspace.sandbox.policy import SandboxPolicy
from codeloop.workspace.sandbox.process_launcher import ProcessLauncher, ProcessStarter

PROGRAM = "/usr/bin/sandbox-exec"
_BASE_RULES = r"""
(version 1)
(deny default)
(allow process-exec process-fork sysctl-read ipc-posix-sem)
(allow signal process-info* (target same-sandbox))
(allow file-read* file-map-executable)
(deny file-read* (regex #"^/dev/tty[a-z]"))
(allow file-write-data (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (subpath "/dev/fd"))
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.bsd.dirhelper"))
"""
# Only these Mach services: others start programs outside of the sandbox, hold keys,
# or fetch any address for a client.
_INTERNET_RULES = r"""
(allow network-outbound (remote ip "*:*") (literal "/private/var/run/mDNSResponder"))
(allow network-bind network-inbound (local ip "*:*"))
(allow mach-lookup (global-name "com.apple.trustd.agent") (global-name "com.apple.SystemConfiguration.configd"))
"""
_WRITABLE_RULE = "(allow file-read* file-write* (subpath {path}))"
_VISIBLE_RULE = "(allow file-read* (subpath {path}))"
_REPLACED_RULE = "(deny file-read-data file-read-xattr (subpath {path}))"
_PROTECTED_RULE = "(deny file-write* (subpath {path}))"
_HIDDEN_RULE = "(deny file-read* file-write* network-outbound (subpath {path}))"
_PINNED_RULE = "(deny file-write-unlink (literal {path}))"
_SOCKETS_RULE = "(allow network-outbound network-bind (subpath {path}))"
_PORT_RULE = '(allow network-outbound (remote ip "localhost:{port}"))'
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"})


class _PathRule(NamedTuple):
    """A rule for a path. `rank`: of two rules for one path, the one with the higher rank counts."""

    path: Path
    rank: int
    template: str


def write_profile(policy: SandboxPolicy, temporary: Path, ports: Iterable[int] = ()) -> str:
    """Return the profile of a policy. `temporary`: a further writable folder;
    `ports`: reachable ports of localhost.
    """
    # Of two rules for a path the later one counts. So the rules are sorted by path, which puts each
    # path after its parents, and rules for the same path by their rank: hidden counts more
    # than protected, and so on.
    uncreatable = [path for path in policy.absent if path not in policy.granted]
    # Nothing can be mounted in their place, so commands only read them,
    # unless one was granted something there.
    git_folders = [
        top
        for top in policy.git_folders
        if not any(path.is_relative_to(top) for path in policy.granted)
    ]
    rules = [_PathRule(path, 0, _REPLACED_RULE) for path in policy.replaced]
    rules += [_PathRule(path, 1, _VISIBLE_RULE) for path in policy.visible]
    rules += [
        _PathRule(path, 2, _WRITABLE_RULE)
        for path in (*policy.writable, *policy.granted, temporary)
    ]
    rules += [
        _PathRule(path, 3, _PROTECTED_RULE)
        for path in (*policy.protected, *git_folders, *uncreatable)
    ]
    rules += [_PathRule(path, 4, _HIDDEN_RULE) for path in policy.hidden]
    lines = [_BASE_RULES.strip()]
    if policy.network == "on":
        lines.append(_INTERNET_RULES.strip())
    else:
        lines += [_PORT_RULE.format(port=port) for port in sorted(ports)]
    lines += [
        _SOCKETS_RULE.format(path=_quote_path(path)) for path in (policy.writable[0], temporary)
    ]
    ordered = sorted(dict.fromkeys(rules), key=lambda rule: (rule.path.parts, rule.rank))
    lines += [rule.template.format(path=_quote_path(rule.path)) for rule in ordered]
    lines += [_PINNED_RULE.format(path=_quote_path(path)) for path in _list_pinned(policy)]
    return "\n".join(lines) + "\n"


def wrap_command(program: Sequence[str], profile: str) -> list[str]:
    """Return the command that runs a program under a profile.
    Raises FileNotFoundError without `sandbox-exec`.
    """
    if not os.access(PROGRAM, os.X_OK):
        raise FileNotFoundError(f"{PROGRAM} is not there")
    return [PROGRAM, "-p", profile, *program]


class SeatbeltStarter(ProcessStarter):
    """Starts each command under its own profile.

    The supervisor itself stays outside, because it needs `ps`,
    which no program under a profile may run.
    """

    def __init__(self, launcher: ProcessLauncher, policy: SandboxPolicy, temporary: Path) -> None:
        super().__init__(launcher.mark)
        self._launcher = launcher
        self._policy = policy
        self._temporary = temporary
        # The ports of this machine that commands may reach although they have no network.
        self.ports: set[int] = set()

    @property
    def is_lost(self) -> bool:
        """Always False: it has no process of its own."""
        return False

    async def check_confinement(self, rows: Sequence[str]) -> None:
        """Have a process under the profile attempt what it may not do.
        Raises OSError for the first that succeeds.
        """
        profile = write_profile(self._policy, self._temporary)
        starter = await self._launcher.make_wrapped_sandbox(
            lambda program: wrap_command(program, profile), rows
        )
        await starter.end()

    async def start(self, launch: Launch) -> LaunchedProcess:
        """Start a program under the profile. Raises OSError."""
        arguments = wrap_command(
            launch.arguments, write_profile(self._policy, self._temporary, self.ports)
        )
        with self.mark_busy():
            process = await self._launcher.start(replace(launch, arguments=arguments))
            self._processes = {each for each in self._processes if not each.has_ended} | {process}
        return process

    async def open_listener(self, port: int) -> socket.socket:
        """Open a socket on a free port, which commands may reach from now on.
        Raises OSError for any port but 0.
        """
        # There is no network but the machine's, so commands reach a given port directly.
        if port:
            self.ports.add(port)
            raise OSError(errno.EADDRINUSE, f"port {port} is in reach as it is")
        listener = socket.create_server(("127.0.0.1", 0))
        self.ports.add(listener.getsockname()[1])
        return listener


def _list_pinned(policy: SandboxPolicy) -> list[Path]:
    """Return the folders that must not be renamed, because there are rules for paths in them."""
    above = {
        folder
        for path in (*policy.protected, *policy.absent, *policy.hidden)
        for folder in path.parents
    }
    return sorted(folder for folder in above if any(map(folder.is_relative_to, policy.writable)))


def _quote_path(path: Path) -> str:
    return '"' + str(path).translate(_ESCAPES) + '"'
