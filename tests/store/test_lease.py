"""Leases: one process at a time, a living one is never robbed,
a dead one is taken over from at once.
"""

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codeloop.kit.processes import read_pid_scope, read_start_time
from codeloop.schema.errors import OperationError
from codeloop.schema.limits import LEASE_TIME
from codeloop.store import lease
from codeloop.store.database import Database
from codeloop.store.lease import LeaseHolder
from codeloop.store.store import Store
from tests.store.states import created, session

ROOT = Path(__file__).resolve().parents[2]
HOLDER = """
import sys
from pathlib import Path
from codeloop.store.store import Store
store = Store(Path(sys.argv[1]))
store.leases.acquire(sys.argv[2])
print("taken", flush=True)
for line in sys.stdin:
    getattr(store.leases, line.strip())(sys.argv[2])
    print("done", flush=True)
"""
WANTER = """
import sys
from pathlib import Path
from codeloop.schema.errors import OperationError
from codeloop.store.store import Store
store = Store(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
try:
    store.leases.acquire("ses_1")
    print("taken", flush=True)
except OperationError as error:
    print(error.kind, flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "codeloop.db"


@contextmanager
def holding(path: Path, session_id: str = "ses_1") -> Generator[subprocess.Popen[str]]:
    """Another process that holds the lease; it gives it back when it is told `drop`."""
    process = started(HOLDER, path, session_id)
    assert process.stdout is not None
    assert process.stdout.readline() == "taken\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def started(code: str, *arguments: object) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )


def say(process: subprocess.Popen[str], word: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{word}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def put(path: Path, holder: LeaseHolder, session_id: str = "ses_1") -> None:
    """Store a lease as another process would have."""
    sql = "INSERT OR REPLACE INTO lease (session_id, host, pid, started, until) VALUES (?, ?, ?, ?, ?)"
    Database(path).execute(
        sql, (session_id, holder.host, holder.pid, holder.started, holder.expires_at)
    )


def own_start() -> str:
    return read_start_time(os.getpid())


def later(milliseconds: int = LEASE_TIME.value) -> int:
    return lease._read_clock_ms() + milliseconds


def test_a_living_holder_is_named_and_not_robbed(path: Path) -> None:
    store = Store(path)
    with holding(path) as other:
        for refused in (store.leases.acquire, store.leases.check_free):
            with pytest.raises(
                OperationError, match=f"ses_1 is being worked on by process {other.pid}[.] Wait"
            ) as busy:
                refused("ses_1")
            assert busy.value.kind == "SessionBusyError"
        store.leases.acquire("ses_2")


def test_a_killed_holder_is_taken_over_from_at_once(path: Path) -> None:
    store = Store(path)
    with holding(path) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
        store.leases.acquire("ses_1")
        assert store.leases.find_other_holder("ses_1") is None


def test_a_killed_holder_that_nobody_has_collected_yet_is_dead_too(path: Path) -> None:
    store = Store(path)
    with holding(path) as other:
        os.kill(other.pid, signal.SIGKILL)
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        store.leases.acquire("ses_1")


def test_a_stopped_holder_lives(path: Path) -> None:
    store = Store(path)
    with holding(path) as other:
        other.send_signal(signal.SIGSTOP)
        with pytest.raises(OperationError, match="being worked on"):
            store.leases.acquire("ses_1")
        other.send_signal(signal.SIGCONT)


def test_a_lease_that_was_given_back_is_free(path: Path) -> None:
    store = Store(path)
    with holding(path) as other:
        assert say(other, "release") == "done"
        store.leases.acquire("ses_1")
        store.leases.release("ses_1")
        assert say(other, "acquire") == "done"


def test_dropping_does_not_take_away_what_another_process_holds(path: Path) -> None:
    store = Store(path)
    with holding(path):
        store.leases.release("ses_1")
        with pytest.raises(OperationError, match="being worked on"):
            store.leases.check_free("ses_1")


def test_a_process_id_that_was_used_again_is_not_the_holder(path: Path) -> None:
    store = Store(path)
    with holding(path, "ses_2") as other:
        put(path, LeaseHolder(platform.node(), other.pid, "12345", later()))
        store.leases.acquire("ses_1")
        put(path, LeaseHolder(platform.node(), os.getpid(), "12345", later()))
        store.leases.acquire("ses_1")
        assert own_start() not in {"", "12345"}


def test_a_holder_on_another_machine_is_believed_until_its_time_is_over(path: Path) -> None:
    store = Store(path)
    put(path, LeaseHolder("elsewhere", 1, "1", later()))
    with pytest.raises(OperationError, match=r"process 1 on elsewhere\. Wait"):
        store.leases.acquire("ses_1")
    put(path, LeaseHolder("elsewhere", 1, "1", later(-1)))
    store.leases.acquire("ses_1")


def test_a_holder_of_an_older_codeloop_is_looked_at_by_its_machine_alone(path: Path) -> None:
    store = Store(path)
    with holding(path, "ses_2") as other:
        put(path, LeaseHolder(platform.node(), other.pid, read_start_time(other.pid), later(-1)))
        with pytest.raises(OperationError, match=f"by process {other.pid}[.] Wait"):
            store.leases.acquire("ses_1")
    store.leases.acquire("ses_1")


def test_a_holder_in_another_container_of_the_same_name_is_believed_until_its_time_is_over(
    path: Path,
) -> None:
    store = Store(path)
    elsewhere = f"{read_pid_scope()}7"
    put(path, LeaseHolder(elsewhere, os.getpid(), own_start(), later()))
    named = f"process {os.getpid()} of another container or machine named {platform.node()}[.] Wait"
    with pytest.raises(OperationError, match=named):
        store.leases.acquire("ses_1")
    put(path, LeaseHolder(elsewhere, os.getpid(), own_start(), later(-1)))
    store.leases.acquire("ses_1")


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root makes a process namespace"
)
@pytest.mark.parametrize("proc", [(), ("--mount-proc",)], ids=["the host's /proc", "its own /proc"])
def test_a_holder_in_another_process_namespace_is_not_taken_for_dead(
    path: Path, proc: tuple[str, ...]
) -> None:
    Store(path)
    argv = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        *proc,
        sys.executable,
        "-c",
        HOLDER,
        str(path),
        "ses_1",
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT
    ) as inside:
        assert inside.stdout is not None
        assert inside.stderr is not None
        if inside.stdout.readline() != "taken\n":
            pytest.skip(f"no process namespace can be made here: {inside.stderr.read()}")
        store = Store(path)
        with pytest.raises(OperationError, match="process 1 of another container"):
            store.leases.acquire("ses_1")
        assert say(inside, "acquire") == "done", "it renews its own"
        held = store.leases.find_other_holder("ses_1")
        assert held is not None
        inside.kill()
    put(path, LeaseHolder(held.host, held.pid, held.started, later(-1)))
    store.leases.acquire("ses_1")


def test_a_lease_from_a_clock_far_ahead_does_not_block_for_longer_than_a_lease(path: Path) -> None:
    store = Store(path)
    put(path, LeaseHolder("elsewhere", 1, "1", later(1_000 * LEASE_TIME.value)))
    store.leases.acquire("ses_1")


def test_a_living_holder_here_keeps_its_lease_whatever_the_clock_says(path: Path) -> None:
    store = Store(path)
    with holding(path) as other:
        held = store.leases.find_other_holder("ses_1")
        assert held is not None
        put(path, LeaseHolder(held.host, other.pid, held.started, later(-10 * LEASE_TIME.value)))
        with pytest.raises(OperationError, match="being worked on"):
            store.leases.acquire("ses_1")


@pytest.mark.slow
def test_one_of_many_that_want_it_at_once_gets_it(path: Path) -> None:
    Store(path).append(created(session("ses_1")))
    processes = [started(WANTER, path) for _ in range(4)]
    try:
        assert [process.stdout.readline() for process in processes if process.stdout] == [
            "ready\n"
        ] * 4
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        said = sorted(process.stdout.readline().strip() for process in processes if process.stdout)
        assert said == [*["SessionBusyError"] * 3, "taken"]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
