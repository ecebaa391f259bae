"""The driver for another machine, where `ssh` starts `codeloop fleet worker`.
The worker ends with the connection.
"""

import os
import re
import select
import shlex
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from msgspec import Struct

from codeloop.kit.programs import find_program, make_child_environment, make_safe_environment
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.wire import JSON
from codeloop_automation.bounds import (
    FLEET_CONNECT,
    FLEET_HEARTBEAT,
    FLEET_HOST_END,
    FLEET_POLL,
    FLEET_REPLY,
)
from codeloop_automation.fleet.driver import DriverLost, FleetStopped, JobTask, check_result
from codeloop_automation.fleet.end_programs import end_program
from codeloop_automation.fleet.remote.messages import apply_reply, pack_order

# IPv6 addresses are in brackets, so that the colon before the port can be found.
_HOST_ADDRESS = r"((?:[\w.-]+@)?(?:\w[\w.-]*|\[[0-9A-Fa-f:.]+\]))(?::(\d{1,5}))?"
_CHUNK_BYTES = 65_536
# An error shows this much of the end of ssh's output.
_LOG_TAIL_CHARACTERS = 300


class SshSettings(Struct, frozen=True):
    """The settings for all hosts. `program`: the command of ssh.
    `codeloop`: the command of codeloop on a host.

    `environment`: variables for the agents.
    """

    program: str
    codeloop: str
    environment: Mapping[str, str]


class SshDriver:
    """Runs agents on another machine. `address`: `[USER@]HOST[:PORT]`."""

    def __init__(self, address: str, settings: SshSettings) -> None:
        """Connect later, once for each job. Raises UsageProblem for an invalid address,
        or if ssh is not installed.
        """
        match = re.fullmatch(_HOST_ADDRESS, address)
        if match is None:
            raise UsageProblem(
                f"`--on ssh:{address}` names no host. Write `--on ssh:USER@HOST` or `--on ssh:HOST:PORT`."
            )
        self.name = f"ssh:{address}"
        program, *options = shlex.split(settings.program) or [""]
        path = (
            program
            if program.startswith("/")
            else find_program(program, make_safe_environment(os.environ)["PATH"])
        )
        if path is None:
            raise UsageProblem(
                f"{program} was not found on the PATH. Install it, or name another with --ssh."
            )
        # BatchMode: fail instead of asking for a password.
        # ServerAlive: notice within 15 s that the host is gone.
        ssh_options = ("BatchMode=yes", f"ConnectTimeout={FLEET_CONNECT.seconds:.0f}")
        ssh_options += ("ServerAliveInterval=5", "ServerAliveCountMax=3")
        port = ("-p", match[2]) if match[2] else ()
        self._command = [
            path,
            *options,
            "-T",
            *(word for each in ssh_options for word in ("-o", each)),
            *port,
        ]
        # ssh takes IPv6 addresses without brackets.
        host = match[1].replace("[", "").replace("]", "")
        # With `exec`, no shell stays between the connection and the worker.
        self._command += ["--", host, f"exec {settings.codeloop} fleet worker"]
        # These go through stdin: all users of a host can read the arguments of its processes.
        self._environment = dict(settings.environment)

    def run(
        self, task: JobTask, record_child: Callable[[int], None], is_stopping: Callable[[], bool]
    ) -> JSON:
        """See Driver."""
        order, bundle = pack_order(task, self._environment)
        output_file = task.folder / "answer"
        with (task.folder / "log").open("wb") as log, output_file.open("wb") as output:
            child = subprocess.Popen(
                self._command,
                cwd="/",
                env=make_child_environment(make_safe_environment(os.environ), "/"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
            assert child.stdin is not None
            assert child.stdout is not None
            end_event = threading.Event()
            sender = threading.Thread(
                target=_send, args=(child.stdin, order, bundle, end_event), daemon=True
            )
            try:
                record_child(child.pid)
                sender.start()
                _receive(child.stdout, output, is_stopping)
            finally:
                # Closes the worker's stdin, and the worker ends with all that it has started.
                end_event.set()
                with suppress(subprocess.TimeoutExpired):
                    child.wait(FLEET_HOST_END.seconds)
                end_program(child.pid)
                child.wait()
                child.stdout.close()
        result = apply_reply(task, output_file, self.name)
        if result is None:
            raise DriverLost(
                f"{self.name} gave no result: {_describe_failure(child.returncode, task.folder / 'log')}"
            )
        bundle.unlink(missing_ok=True)
        output_file.unlink()
        return check_result(result)

    def remove_remains(self, job_id: str) -> None:
        """Do nothing: a worker removes its files before it ends."""

    def end_remote_processes(self, job_id: str, attempt: int) -> None:
        """Do nothing: a worker ends when its connection ends."""


def _send(stdin: IO[bytes], order: bytes, bundle: Path, end_event: threading.Event) -> None:
    """Send the order and its bundle, and then heartbeats until the job has ended."""
    # A write fails when ssh has ended; `run` then finds no reply and reports why.
    with suppress(OSError), stdin:
        stdin.write(order)
        if bundle.exists():
            with bundle.open("rb") as stream:
                while not end_event.is_set() and (chunk := stream.read(_CHUNK_BYTES)):
                    stdin.write(chunk)
        stdin.flush()
        while not end_event.wait(FLEET_HEARTBEAT.seconds):
            stdin.write(b".")
            stdin.flush()


def _receive(stdout: IO[bytes], output: IO[bytes], is_stopping: Callable[[], bool]) -> None:
    """Write the worker's stdout to a file until its end.
    Raises FleetStopped, and CodeloopError for too much output.
    """
    size = 0
    while True:
        if is_stopping():
            raise FleetStopped("The fleet was stopped.")
        if not select.select([stdout], [], [], FLEET_POLL.seconds)[0]:
            continue
        chunk = os.read(stdout.fileno(), _CHUNK_BYTES)
        size += len(chunk)
        if size > FLEET_REPLY.value:
            raise CodeloopError(f"The job's changes are larger than {FLEET_REPLY.value:,} bytes.")
        if not chunk:
            return
        output.write(chunk)


def _describe_failure(code: int, log: Path) -> str:
    """Return why ssh ended without a result, and what to do."""
    log_tail = " ".join(log.read_bytes()[-_CHUNK_BYTES:].decode("utf-8", "replace").split())[
        -_LOG_TAIL_CHARACTERS:
    ]
    # The shell on the host did not find the command.
    if code == 127:
        return f"codeloop was not found there. Say how to start it with --codeloop. {log_tail}"
    return log_tail or f"ssh ended with {code}."
