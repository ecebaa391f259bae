"""A fleet on a host behind a real sshd: exactly once whatever is cut, all of it ended in seconds,
keys on stdin.
"""

import getpass
import json
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from codeloop.kit.processes import list_processes
from codeloop.schema.errors import UsageProblem
from codeloop_automation.fleet.remote.ssh_driver import SshDriver, SshSettings
from tests.automation.fleet.test_fleet import DONE, repository, status, write_table
from tests.cli.program import Desk, bash, serving, steps
from tests.faults.test_kill import wait_for
from tests.support.free_port import find_free_port

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
KEY = "sk-of-the-coordinator-9876543210"
needs_sshd = pytest.mark.skipif(SSHD is None, reason="sshd is not installed (openssh-server)")


@dataclass
class Host:
    """A machine behind `sshd`, which has its own home and codeloop's configuration there."""

    desk: Desk
    port: int
    folder: Path
    daemon: subprocess.Popen[bytes] | None = None

    @property
    def flags(self) -> list[str]:
        home = {
            "CODELOOP_HOME": str(self.desk.home),
            "HOME": str(self.desk.folder),
            "CODELOOP_DISABLE_MODELS_FETCH": "1",
        }
        command = shlex.join(
            ["env", *(f"{name}={value}" for name, value in home.items()), *self.desk.command]
        )
        driver_address = f"ssh:{getpass.getuser()}@127.0.0.1:{self.port}"
        return [
            "--on",
            driver_address,
            "--ssh",
            f"ssh -F {self.folder / 'config'}",
            "--codeloop",
            command,
            "--env",
            "FLEET_KEY",
        ]

    def start(self) -> None:
        assert SSHD is not None
        self.daemon = subprocess.Popen(
            [SSHD, "-D", "-f", str(self.folder / "sshd_config")], stdin=subprocess.DEVNULL
        )
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.1)
        raise AssertionError("sshd did not start")

    def sessions(self) -> list[int]:
        """The processes of sshd that hold a connection each."""
        assert self.daemon is not None
        return [each.pid for each in list_processes() if each.parent == self.daemon.pid]

    def cut(self) -> None:
        """End all connections, as when the network goes."""
        for session in self.sessions():
            with suppress(ProcessLookupError):
                os.kill(session, signal.SIGKILL)

    def kill_workers(self) -> int:
        """Kill the workers alone, so that their agents go on; returns how many there were."""
        owners = (self.desk.home / "data" / "fleet-worker").glob("*/owner.json")
        killed = 0
        for file in owners:
            with suppress(OSError):  # it may have ended meanwhile
                os.kill(json.loads(file.read_bytes())["worker"], signal.SIGKILL)
                killed += 1
        return killed

    def stop(self) -> None:
        assert self.daemon is not None
        self.daemon.kill()
        self.cut()
        self.daemon.wait()

    def work_left(self) -> list[str]:
        """What of this host's jobs is still there: processes, and folders of workers."""
        mark = f"CODELOOP_HOME={self.desk.home}"
        folders = (self.desk.home / "data" / "fleet-worker").glob("*/")
        return [
            *(str(each.pid) for each in list_processes(mark) if each.has_marker),
            *map(str, folders),
        ]


@contextmanager
def running_host(tmp_path: Path) -> Generator[Host]:
    folder = tmp_path / "ssh"
    folder.mkdir(mode=0o700)
    (tmp_path / "host").mkdir()
    for name in ("host_key", "user_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True
        )
    port = find_free_port()
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host_key\nAuthorizedKeysFile {folder}/user_key.pub\n"
        f"PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\nLogLevel ERROR\n"
    )
    public = (folder / "host_key.pub").read_text()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {public}")
    (folder / "config").write_text(
        f"Host *\n  IdentityFile {folder}/user_key\n  UserKnownHostsFile {folder}/known\n  IdentitiesOnly yes\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where root's sshd separates its privileges
    host = Host(Desk(tmp_path / "host"), port, folder)
    host.start()
    try:
        yield host
    finally:
        host.stop()


@contextmanager
def serving_git(folder: Path) -> Generator[str]:
    """Serve a folder's repositories by git's own protocol."""
    port = find_free_port()
    command = [
        "git",
        "daemon",
        "--reuseaddr",
        "--export-all",
        f"--base-path={folder}",
        "--listen=127.0.0.1",
    ]
    daemon = subprocess.Popen([*command, f"--port={port}"], start_new_session=True)
    try:
        yield f"git://127.0.0.1:{port}"
    finally:
        os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()


def until_empty(host: Host) -> list[str]:
    deadline = time.monotonic() + 60
    while (left := host.work_left()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


@needs_sshd
@pytest.mark.slow
def test_each_job_has_its_effect_exactly_once_when_connections_are_cut(tmp_path: Path) -> None:
    desk, draw = Desk(tmp_path, {"FLEET_KEY": KEY}), random.Random(7)
    source = repository(desk)
    ids = [f"j{at}" for at in range(6)]
    with (
        serving(steps(bash("echo line >> log; sleep 1"), DONE)) as server,
        running_host(tmp_path) as host,
        serving_git(source.parent) as address,
    ):
        host.desk.use(server, options={"apiKey": "{env:FLEET_KEY}"})
        repositories = [str(source)] * 5 + [f"{address}/work"]
        jobs = zip(ids, repositories, strict=True)
        table = write_table(
            desk, [{"id": name, "repository": address, "prompt": "add"} for name, address in jobs]
        )
        for victim in ("worker", "coordinator", "connection"):
            coordinator = desk.start("fleet", "run", table, "--at-once", "2", *host.flags)
            time.sleep(draw.uniform(3, 6))
            if victim == "worker":
                wait_for(host.kill_workers)
            elif victim == "connection":
                host.cut()
            time.sleep(draw.uniform(0, 3))
            if victim == "coordinator":
                coordinator.kill()
            else:
                coordinator.terminate()
            coordinator.communicate()
            assert victim == "worker" or until_empty(host) == [], (
                "what a killed worker left, the next one ends"
            )
        last = desk.run("fleet", "run", table, "--at-once", "2", *host.flags)
        assert last.returncode == 0, last.stderr
        assert until_empty(host) == []
        headers = {received.headers["authorization"] for received in server.requests}
    assert headers == {f"Bearer {KEY}"}
    assert status(desk)["done"] == len(ids)
    folder = desk.home / "data" / "fleet" / "jobs" / "jobs"
    for name in ids:
        work = folder / name / "work"
        assert (work / "log").read_text() == "start\nline\n"
        commits = subprocess.run(
            ["git", "-C", str(work), "log", "--oneline", f"codeloop/{name}"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert len(commits.stdout.splitlines()) == 2
        assert "+line" in json.loads((folder / name / "result.json").read_bytes())["diff"]


@needs_sshd
@pytest.mark.slow
def test_a_stop_ends_what_runs_on_the_host_and_no_process_shows_a_key(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"FLEET_KEY": KEY})
    source = repository(desk)
    command = f"sleep 600.{os.getpid()}"  # of this run alone, whatever else runs on the machine
    shown_command = command.replace(" ", "\0").encode()
    with serving(steps(bash(command), DONE)) as server, running_host(tmp_path) as host:
        host.desk.use(
            server,
            options={"apiKey": "{env:FLEET_KEY}"},
            sandbox="off",
            permission={"bash": "allow"},
        )
        table = write_table(
            desk, [{"id": f"j{at}", "repository": str(source), "prompt": "wait"} for at in range(2)]
        )
        coordinator = desk.start("fleet", "run", table, "--at-once", "2", *host.flags)
        try:
            while (shown := _command_lines()).count(shown_command) < 2:
                assert coordinator.poll() is None
                time.sleep(0.1)
            assert KEY.encode() not in shown
            began = time.monotonic()
            assert desk.run("fleet", "stop", "jobs").returncode == 0
            assert coordinator.wait(120) == 130
            left = until_empty(host)
            took = time.monotonic() - began
        finally:
            coordinator.kill()
            coordinator.communicate()
        assert left == []
        assert shown_command not in _command_lines()
        assert took < 60, (
            "5 s on a machine that is not busy, and two minutes if it waited for the jobs"
        )
        assert status(desk)["waiting"] == 2


@needs_sshd
@pytest.mark.slow
def test_a_worker_that_hears_nothing_ends_its_job_though_the_connection_stands(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, {"FLEET_KEY": KEY})
    source = repository(desk)
    with (
        serving(steps(bash("echo line >> log; sleep 6"), DONE)) as server,
        running_host(tmp_path) as host,
    ):
        host.desk.use(server, options={"apiKey": "{env:FLEET_KEY}"})
        host.desk.limits["automation.FLEET_LEASE"] = 3_000
        table = write_table(desk, [{"id": "one", "repository": str(source), "prompt": "add"}])
        coordinator = desk.start("fleet", "run", table, *host.flags)
        try:
            while b'"tools"' not in b"".join(received.body for received in server.requests):
                assert coordinator.poll() is None
                time.sleep(0.1)
            (client,) = {each.pid for each in list_processes() if each.parent == coordinator.pid}
            os.kill(client, signal.SIGSTOP)
            assert until_empty(host) == []
            assert coordinator.poll() is None
            os.kill(client, signal.SIGCONT)
            assert coordinator.wait(120) == 0
        finally:
            coordinator.kill()
            coordinator.communicate()
    (row,) = status(desk)["rows"]
    # On a busy machine a sign of life may come too late once more.
    assert (row["state"], row["attempts"] >= 2) == ("done", True)
    assert (Path(row["work"]) / "log").read_text() == "start\nline\n"


@needs_sshd
@pytest.mark.slow
def test_a_host_that_is_gone_leaves_its_jobs_to_others_and_says_why(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"FLEET_KEY": KEY})
    source = repository(desk)
    with serving(steps(bash("echo line >> log"), DONE)) as server, running_host(tmp_path) as host:
        desk.use(server)
        table = write_table(desk, [{"id": "one", "repository": str(source), "prompt": "add"}])
        lost = desk.run(
            "fleet",
            "run",
            table,
            "--at-once",
            "1",
            *host.flags[:-4],
            "--codeloop",
            "no-such-program",
        )
        assert lost.returncode == 130
        assert (
            "gave no result: codeloop was not found there. Say how to start it with --codeloop."
            in lost.stderr
        )
        host.stop()
        lost = desk.run("fleet", "run", table, "--at-once", "1", *host.flags)
        assert lost.returncode == 130
        assert "Connection refused" in lost.stderr
        assert desk.run("fleet", "run", table, "--on", "here", *host.flags).returncode == 0
    assert (
        desk.home / "data" / "fleet" / "jobs" / "jobs" / "one" / "work" / "log"
    ).read_text() == "start\nline\n"


def test_what_is_no_host_is_refused() -> None:
    settings = SshSettings("ssh", "codeloop", {})
    for driver_address in ("", "-oProxyCommand=x", "a b", "user@", "host:port", "a@-b"):
        with pytest.raises(UsageProblem, match="names no host"):
            SshDriver(driver_address, settings)
    with pytest.raises(UsageProblem, match="was not found on the PATH"):
        SshDriver("host", SshSettings("no-such-program", "codeloop", {}))


def _command_lines() -> bytes:
    """What any user of this machine can read of all processes."""
    found = b""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += file.read_bytes()
    return found
