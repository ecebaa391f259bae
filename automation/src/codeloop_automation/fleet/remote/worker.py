"""`codeloop fleet worker`: does one job of another machine's fleet,
for as long as that machine sends heartbeats.
"""

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

from codeloop.kit.processes import is_alive, read_start_time
from codeloop.kit.remove_tree import remove_tree
from codeloop.kit.small_files import lock, write_atomically
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.wire import DECODE_ERRORS, JSON
from codeloop_automation.bounds import (
    FLEET_BUSY,
    FLEET_HOST_END,
    FLEET_LEASE,
    FLEET_ORDER,
    FLEET_POLL,
)
from codeloop_automation.fleet.driver import FleetStopped, JobTask
from codeloop_automation.fleet.end_programs import end_program
from codeloop_automation.fleet.git import run_git
from codeloop_automation.fleet.job_attempt import JobAttempt
from codeloop_automation.fleet.local_driver import LocalDriver
from codeloop_automation.fleet.remote.messages import Order, Reply

_CHUNK_BYTES = 65_536


class CoordinatorConnection:
    """The connection to the coordinator on the file descriptor `fd`.
    It ends with the stream, or without heartbeats.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = b""
        self._must_end = threading.Event()

    def read_order(self) -> Order:
        """Read the order. Raises UsageProblem for another first line, FleetStopped if the
        connection ends before it.
        """
        while b"\n" not in self._buffer and len(self._buffer) < FLEET_ORDER.value:
            self._buffer += self._read(_CHUNK_BYTES)
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            return msgspec.json.decode(line, type=Order)
        except msgspec.DecodeError as error:
            raise UsageProblem(
                f"This is not a job: {error}. `codeloop fleet run --on ssh:HOST` starts a worker."
            ) from error

    def read_bundle(self, file: Path, size: int) -> None:
        """Read the bundle that follows the order into a file.
        Raises FleetStopped if the connection ends before.
        """
        with file.open("wb") as output:
            while size:
                chunk = self._buffer[:size] or self._read(min(size, _CHUNK_BYTES))
                self._buffer = self._buffer[len(chunk) :]
                size -= len(chunk)
                output.write(chunk)

    def watch(self, end: Callable[[], object]) -> None:
        """Read heartbeats in a thread; when the connection ends, call `end` after FLEET_HOST_END.

        In between, the job has time to end by itself.
        """

        def read_heartbeats() -> None:
            with suppress(FleetStopped, OSError):
                while not self._must_end.is_set():
                    self._read(_CHUNK_BYTES)
            self._must_end.set()
            time.sleep(FLEET_HOST_END.seconds)
            end()

        threading.Thread(target=read_heartbeats, daemon=True).start()

    def must_end(self) -> bool:
        """Return whether the job must end."""
        return self._must_end.is_set()

    def request_end(self) -> None:
        """Make the job end, as when the connection ends."""
        self._must_end.set()

    def _read(self, size: int) -> bytes:
        """Read up to `size` bytes. Raises FleetStopped at the end of the stream, or after
        FLEET_LEASE without data.
        """
        deadline = time.monotonic() + FLEET_LEASE.seconds
        while not self._must_end.is_set() and time.monotonic() < deadline:
            if select.select([self._fd], [], [], FLEET_POLL.seconds)[0]:
                if data := os.read(self._fd, size):
                    return data
                break
        raise FleetStopped("The coordinator is gone.")


class _FolderOwner(Struct, frozen=True):
    """The owner of a folder: process id and start time of a worker,
    and those of its agent (`child`).
    """

    worker: int
    worker_started: str
    child: int = 0
    child_started: str = ""


def run_worker(root: Path, connection: CoordinatorConnection, output: IO[bytes]) -> None:
    """Read the order, do the job in a folder below `root`, and write the reply. Raises
    FleetStopped, UsageProblem.
    """
    # In a session of its own, all processes can be ended together.
    # PermissionError: this process leads one already.
    with suppress(PermissionError):
        os.setsid()
    order = connection.read_order()
    os.environ.update(order.environment)
    with _make_folder(root) as folder:
        job, branch = order.job, f"codeloop/{order.job.id}"
        if order.size:
            connection.read_bundle(folder / "bundle", order.size)
            job = msgspec.structs.replace(job, repository=str(folder / "bundle"), base=branch)
        owner = _FolderOwner(os.getpid(), read_start_time(os.getpid()))

        def record_child(child: int) -> None:
            _write_owner(
                folder,
                msgspec.structs.replace(owner, child=child, child_started=read_start_time(child)),
            )

        connection.watch(lambda: _end_session(folder))
        task = JobTask(job=job, attempt=1, folder=folder / "attempt", flags=order.flags)
        result: JSON = {"reason": "error", "exitCode": 1}
        bundle = folder / "changes"
        try:
            attempt = JobAttempt(folder, LocalDriver(), task, start_commit=order.commit)
            result = attempt.run(record_child=record_child, is_stopping=connection.must_end)
            # The coordinator makes the diff anew, from the commits.
            result.pop("diff", None)
            if result.get("commit", order.commit) != order.commit:
                tree = folder / "jobs" / job.id / "work"
                run_git(
                    str(tree),
                    "bundle",
                    "create",
                    "--quiet",
                    str(bundle),
                    branch,
                    f"^{order.commit}",
                    tree=tree,
                )
        except FleetStopped:
            raise
        except (CodeloopError, OSError) as error:
            result = {**result, "reason": "error", "exitCode": 1, "message": str(error)}
        size = bundle.stat().st_size if bundle.exists() else 0
        output.write(msgspec.json.encode(Reply(result, size)) + b"\n")
        if size:
            with bundle.open("rb") as stream:
                shutil.copyfileobj(stream, output)
        output.flush()


@contextmanager
def _make_folder(root: Path) -> Generator[Path]:
    """Make a folder for this worker, and remove it at the end.
    Folders of killed workers are removed first.
    """
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    with lock(root / "lock", FLEET_BUSY.seconds):
        for folder in root.iterdir():
            if not folder.is_dir():
                continue
            owner = _read_owner(folder)
            if not is_alive(owner.worker, owner.worker_started):
                if owner.child:
                    end_program(owner.child, owner.child_started)
                remove_tree(folder)
        # Still under the lock: a folder without an owner would be taken for one of a killed worker.
        new_folder = Path(tempfile.mkdtemp(dir=root))
        _write_owner(new_folder, _FolderOwner(os.getpid(), read_start_time(os.getpid())))
    try:
        yield new_folder
    finally:
        remove_tree(new_folder)


def _end_session(folder: Path) -> None:
    """End the agent, remove the folder, and kill all processes of this session, with this one."""
    owner = _read_owner(folder)
    if owner.child:
        end_program(owner.child, owner.child_started)
    remove_tree(folder)
    os.killpg(0, signal.SIGKILL)


def _write_owner(folder: Path, owner: _FolderOwner) -> None:
    write_atomically(folder / "owner.json", msgspec.json.encode(owner))


def _read_owner(folder: Path) -> _FolderOwner:
    """Return the owner of a folder; one that is not alive if the file is missing or damaged."""
    try:
        return msgspec.json.decode((folder / "owner.json").read_bytes(), type=_FolderOwner)
    except (OSError, *DECODE_ERRORS):
        return _FolderOwner(0, "never")
