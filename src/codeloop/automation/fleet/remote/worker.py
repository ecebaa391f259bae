"""Does one job on another machine (`codeloop fleet worker`), for as long as its coordinator sends heartbeats."""

import os
import select
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from codeloop.automation.fleet.driver import JobTask, Stopped
from codeloop.automation.fleet.git import run_git
from codeloop.automation.fleet.job_attempt import JobAttempt
from codeloop.automation.fleet.local_driver import LocalDriver, end_program
from codeloop.automation.fleet.remote.messages import Order, Reply
from codeloop.kit.processes import is_alive, read_start_time
from codeloop.kit.small_files import lock, remove_tree, write_atomically
from codeloop.schema.bounds.automation import FLEET_BUSY, FLEET_HOST_END, FLEET_LEASE, FLEET_ORDER, FLEET_POLL
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.wire import JSON

_CHUNK_BYTES = 65_536


class Lease:
    """The connection to the coordinator on the file descriptor `fd`; it is over when no heartbeat comes."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = b""
        self._is_over = threading.Event()

    def read_order(self) -> Order:
        """Read the order. Raises UsageProblem if the first line is none."""
        while b"\n" not in self._buffer and len(self._buffer) < FLEET_ORDER.value:
            self._buffer += self._read(_CHUNK_BYTES)
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            return msgspec.json.decode(line, type=Order)
        except msgspec.DecodeError as error:
            raise UsageProblem(
                f"This is no job: {error}. `codeloop fleet run --on ssh:HOST` starts a worker."
            ) from error

    def read_bundle(self, file: Path, size: int) -> None:
        """Read the bundle that follows the order, and write it to a file. Raises Stopped."""
        with file.open("wb") as output:
            while size:
                chunk = self._buffer[:size] or self._read(min(size, _CHUNK_BYTES))
                self._buffer = self._buffer[len(chunk) :]
                size -= len(chunk)
                output.write(chunk)

    def watch(self, end: Callable[[], object]) -> None:
        """Start to watch the connection; when it is over, call `end` after FLEET_HOST_END."""

        def look() -> None:
            with suppress(Stopped, OSError):
                while not self._is_over.is_set():
                    self._read(_CHUNK_BYTES)
            self._is_over.set()
            time.sleep(FLEET_HOST_END.seconds)
            end()

        threading.Thread(target=look, daemon=True).start()

    def is_over(self) -> bool:
        """Return whether the job must end."""
        return self._is_over.is_set()

    def give_up(self) -> None:
        """Make the job end."""
        self._is_over.set()

    def _read(self, size: int) -> bytes:
        deadline = time.monotonic() + FLEET_LEASE.seconds
        while not self._is_over.is_set() and time.monotonic() < deadline:
            if select.select([self._fd], [], [], FLEET_POLL.seconds)[0]:
                if data := os.read(self._fd, size):
                    return data
                break
        raise Stopped("The coordinator is gone.")


class _Owner(Struct, frozen=True):
    """The owner of a folder: the process id and start time of a worker, and those of its agent (`child`)."""

    worker: int
    worker_started: str
    child: int = 0
    child_started: str = ""


def work(root: Path, lease: Lease, output: IO[bytes]) -> None:
    """Read the order, do the job in a folder below `root`, and write the reply. Raises Stopped, UsageProblem."""
    with suppress(PermissionError):
        os.setsid()  # so that all processes can be ended together
    order = lease.read_order()
    os.environ.update(order.environment)
    with _make_folder(root) as folder:
        job, branch = order.job, f"codeloop/{order.job.id}"
        if order.size:
            lease.read_bundle(folder / "bundle", order.size)
            job = msgspec.structs.replace(job, repository=str(folder / "bundle"), base=branch)
        owner = _Owner(os.getpid(), read_start_time(os.getpid()))

        def note(child: int) -> None:
            _write_owner(folder, msgspec.structs.replace(owner, child=child, child_started=read_start_time(child)))

        lease.watch(lambda: _end_all(folder))
        task = JobTask(job, 1, folder / "attempt", order.flags)
        result: JSON = {"reason": "error", "exitCode": 1}
        changes = folder / "changes"
        try:
            result = JobAttempt(folder, LocalDriver(), task, order.commit).run(note, lease.is_over)
            result.pop("diff", None)
            if result.get("commit", order.commit) != order.commit:
                tree = str(folder / "jobs" / job.id / "work")
                run_git(tree, "-C", tree, "bundle", "create", "--quiet", str(changes), branch, f"^{order.commit}")
        except Stopped:
            raise
        except (CodeloopError, OSError) as error:
            result = {**result, "reason": "error", "exitCode": 1, "message": str(error)}
        size = changes.stat().st_size if changes.exists() else 0
        output.write(msgspec.json.encode(Reply(result, size)) + b"\n")
        if size:
            with changes.open("rb") as read:
                shutil.copyfileobj(read, output)
        output.flush()


@contextmanager
def _make_folder(root: Path) -> Generator[Path]:
    """Make a folder for this worker, and remove it at the end. Folders of killed workers are removed first."""
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    with lock(root / "lock", FLEET_BUSY.seconds):
        for folder in root.iterdir():
            if folder.is_dir() and not is_alive((owner := _read_owner(folder)).worker, owner.worker_started):
                if owner.child:
                    end_program(owner.child, owner.child_started)
                remove_tree(folder)
        made = Path(tempfile.mkdtemp(dir=root))
        _write_owner(made, _Owner(os.getpid(), read_start_time(os.getpid())))
    try:
        yield made
    finally:
        remove_tree(made)


def _end_all(folder: Path) -> None:
    """Kill the agent, remove the folder, and kill all processes of this session, with this one."""
    if child := (owner := _read_owner(folder)).child:
        end_program(child, owner.child_started)
    remove_tree(folder)
    os.killpg(0, signal.SIGKILL)


def _write_owner(folder: Path, owner: _Owner) -> None:
    write_atomically(folder / "owner.json", msgspec.json.encode(owner))


def _read_owner(folder: Path) -> _Owner:
    try:
        return msgspec.json.decode((folder / "owner.json").read_bytes(), type=_Owner)
    except (OSError, msgspec.DecodeError):
        return _Owner(0, "never")
