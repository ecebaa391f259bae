"""Tests this machine's sandbox, by running real programs that attempt what it must block.

Used by `codeloop debug sandbox` and `codeloop doctor`.
"""

import os
import socket
import sys
from pathlib import Path

from msgspec import Struct

from codeloop.kit.remove_tree import temporary_folder
from codeloop.schema.config import SandboxConfig
from codeloop.schema.wire import replace
from codeloop.workspace.process.shells import ShellCommand, ShellContext, Shells
from codeloop.workspace.sandbox.policy import PolicyInput
from codeloop.workspace.sandbox.sandbox import SandboxUnavailable
from codeloop.workspace.sandbox.secret_variables import find_secret_variables
from codeloop.workspace.sandbox.shortcomings import (
    WHOLE_SYSTEM_REASON,
    is_whole_system,
    list_shortcomings,
)

_HIDDEN_TEXT = "what no command may read"
_COMMAND_SECONDS = 20.0
_END_SECONDS = 0.5
_CONNECT_PROGRAM = "import os,socket,sys;s=socket.socket({family});{enter}s.connect({address!r})"
_HAS_PROC = sys.platform == "linux"


class Attempt(Struct, frozen=True):
    """One attempt of a sandboxed command, `what` in words. `ok`: it was blocked;
    an allowed one: it worked.
    """

    what: str
    ok: bool


class SandboxReport(Struct, frozen=True):
    """The results. `backend`: what enforces the sandbox, "" for none;
    `refused`: why other backends are unavailable.

    `variables`: the names of those that sandboxed programs don't get since they hold secrets.
    `shortcomings`: what it can't do here, in clauses.
    The fields are printed by `codeloop debug sandbox`.
    """

    mode: str
    backend: str
    refused: dict[str, str]
    network: str
    writable: list[str]
    layered: list[str]
    replaced: list[str]
    protected: list[str]
    hidden: list[str]
    attempts: list[Attempt]
    variables: list[str] = []
    shortcomings: list[str] = []

    @property
    def holds(self) -> bool:
        """Whether there is a sandbox and it passed every attempt."""
        return bool(self.backend) and all(attempt.ok for attempt in self.attempts)


async def make_report(
    policy_input: PolicyInput, config: SandboxConfig, *, is_brief: bool = False
) -> SandboxReport:
    """Try the sandbox in a temporary project. Returns the results,
    with the policy for `policy_input`.

    `is_brief`: only two attempts are made, one that has to fail and one that has to work.
    """
    shells = Shells()
    policy = shells.make_policy(policy_input, config)
    backend = ""
    attempts: list[Attempt] = []
    shortcomings: list[str] = []
    try:
        with temporary_folder("codeloop-try-") as folder:
            trial = _TrialProject(shells, policy_input, config, Path(os.path.realpath(folder)))
            sandbox = await shells.sandboxes.enter(trial.policy)
            backend = sandbox.backend
            shortcomings = list_shortcomings(backend, config.network, sandbox.lacks)
            if is_whole_system(policy_input.root):
                shortcomings.append(f"commands here run without it: {WHOLE_SYSTEM_REASON}")
            attempts = await (
                trial.run_brief()
                if is_brief
                else trial.run_all(is_network_limited=config.network != "on")
            )
    except SandboxUnavailable:
        backend = ""
    finally:
        reasons = {str(kind): why for kind, why in shells.sandboxes.refused.items()}
        await shells.close()
    network = "off" if backend == "landlock" and config.network == "hosts" else config.network
    return SandboxReport(
        mode=config.mode,
        backend=backend,
        refused=reasons,
        network=network,
        writable=list(map(str, policy.writable)),
        layered=list(map(str, policy.layered)),
        replaced=list(map(str, policy.replaced)),
        protected=list(map(str, policy.protected)),
        hidden=list(map(str, policy.hidden)),
        variables=sorted(find_secret_variables(policy_input.environment, config.variables)),
        attempts=attempts,
        shortcomings=shortcomings,
    )


class _TrialProject:
    """A temporary project to try the sandbox in, next to a secret and a socket that
    commands must not reach.
    """

    def __init__(
        self, shells: Shells, policy_input: PolicyInput, config: SandboxConfig, folder: Path
    ) -> None:
        root, self._hidden = folder / "project", folder / "hidden"
        for each in (root, self._hidden):
            each.mkdir()
        (self._hidden / "secret").write_text(_HIDDEN_TEXT)
        self._shells = shells
        self._home = policy_input.home
        self._root = root
        trial_input = replace(policy_input, root=root, directory=root, scratch=folder / "scratch")
        self._context = ShellContext("debug", root, policy_input.environment, trial_input.scratch)
        self.policy = shells.make_policy(
            trial_input, replace(config, hidden=[*config.hidden, str(self._hidden)])
        )

    async def run_all(self, *, is_network_limited: bool) -> list[Attempt]:
        """Make all attempts."""
        attempts = [await self._try_writing_outside()]
        attempts += await self._try_reading_home(self._home / f".codeloop-try-{os.getpid()}")
        attempts += await self._try_changing_caches(f".codeloop-try-{os.getpid()}")
        attempts += await self._try_reading_terminals()
        output = await self._run(
            f"cat '{self._hidden}/secret' /proc/[0-9]*/root'{self._hidden}/secret'"
        )
        attempts.append(
            Attempt("read a file that is hidden, as ~/.ssh is", _HIDDEN_TEXT not in output)
        )
        attempts.append(Attempt("end a process of this program", await self._survives_kill()))
        attempts += await self._try_connecting(is_network_limited=is_network_limited)
        await self._run(
            "mkdir .codeloop; echo '{}' > .codeloop/codeloop.json; echo '{}' > opencode.json"
        )
        has_appeared = any(
            os.path.lexists(self._root / name) for name in (".codeloop", "opencode.json")
        )
        attempts.append(
            Attempt("leave configuration for codeloop in the project", not has_appeared)
        )
        return [*attempts, await self._try_writing_inside()]

    async def run_brief(self) -> list[Attempt]:
        """Try to write outside of the project, and in it."""
        return [await self._try_writing_outside(), await self._try_writing_inside()]

    async def _try_writing_outside(self) -> Attempt:
        outside = self._home / f".codeloop-try-{os.getpid()}"
        await self._run(f"echo x > '{outside}'; echo x > '/proc/self/root{outside}'")
        is_kept = not outside.exists()
        outside.unlink(missing_ok=True)
        return Attempt("write a file in the home folder", is_kept)

    async def _try_writing_inside(self) -> Attempt:
        output = await self._run("echo works > file; cat file")
        return Attempt("(allowed) write and read in the project", "works" in output)

    async def _try_reading_home(self, path: Path) -> list[Attempt]:
        """Try to read a file in the home that no table names, unless the project is the home."""
        if self.policy.home is None:
            return []
        try:
            path.write_text(_HIDDEN_TEXT, encoding="utf-8")
            output = await self._run(f"cat '{path}' '/proc/self/root{path}'")
        finally:
            path.unlink(missing_ok=True)
        return [
            Attempt(
                "read a file in the home folder that is none of a tool", _HIDDEN_TEXT not in output
            )
        ]

    async def _try_changing_caches(self, name: str) -> list[Attempt]:
        """Try to leave a file in each cache."""
        if not self.policy.layered:
            return []
        await self._run("; ".join(f"echo x > '{cache}/{name}'" for cache in self.policy.layered))
        paths = [path for cache in self.policy.layered if (path := cache / name).exists()]
        for path in paths:
            path.unlink()
        return [Attempt("change a cache that programs outside use", not paths)]

    async def _try_reading_terminals(self) -> list[Attempt]:
        """Try to read another terminal of the user, where one can be opened."""
        try:
            ours, theirs = os.openpty()
        except OSError:
            return []
        try:
            os.write(ours, f"{_HIDDEN_TEXT}\n".encode())
            output = await self._run(
                f"timeout 1 head -c {len(_HIDDEN_TEXT)} < {os.ttyname(theirs)}"
            )
            return [Attempt("read what is typed in another terminal", _HIDDEN_TEXT not in output)]
        finally:
            os.close(ours)
            os.close(theirs)

    async def _survives_kill(self) -> bool:
        """Return whether a process of another command is still there to be killed after
        a command tried to kill it.
        """
        job = await self._shells.start(
            self._context, ShellCommand("echo $$; exec sleep 60", _COMMAND_SECONDS)
        )
        pid = (await job.read(_COMMAND_SECONDS)).output.strip()
        await self._run(f"kill -9 {pid}")
        # The end of another process is noticed some time after it.
        await job.read(_END_SECONDS)
        return await job.kill()

    async def _try_connecting(self, *, is_network_limited: bool) -> list[Attempt]:
        """Try to connect to a socket as that of docker, and to a port of this machine,
        where such can be opened.
        """
        descriptor = os.open(self._hidden, os.O_RDONLY)
        try:
            with socket.socket(socket.AF_UNIX) as service, socket.socket() as machine:
                # A path of a socket is limited to about a hundred bytes;
                # the one through /proc is short.
                service.bind(
                    f"/proc/self/fd/{descriptor}/socket"
                    if _HAS_PROC
                    else str(self._hidden / "socket")
                )
                machine.bind(("127.0.0.1", 0))
                try:
                    for each in (service, machine):
                        each.listen()
                        each.settimeout(0)
                except PermissionError:
                    return []
                # From the folder of the socket, for the same reason.
                # The program names families by their numbers.
                enter = f"os.chdir({str(self._hidden)!r});"
                for code in (
                    _CONNECT_PROGRAM.format(
                        family=int(socket.AF_UNIX), enter=enter, address="socket"
                    ),
                    _CONNECT_PROGRAM.format(
                        family=int(socket.AF_INET), enter="", address=machine.getsockname()
                    ),
                ):
                    (self._root / "try.py").write_text(code)
                    await self._run("python3 try.py")
                attempts = [
                    Attempt("connect to a socket as that of docker", not _was_reached(service))
                ]
                if is_network_limited:
                    attempts.append(
                        Attempt("connect to a port of this machine", not _was_reached(machine))
                    )
                return attempts
        finally:
            os.close(descriptor)

    async def _run(self, text: str) -> str:
        command = ShellCommand(text, _COMMAND_SECONDS, policy=self.policy)
        return (await self._shells.run(self._context, command, lambda _: None)).output


def _was_reached(listener: socket.socket) -> bool:
    """Return whether a connection waits at a socket."""
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True
