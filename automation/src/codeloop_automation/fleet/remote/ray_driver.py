"""The driver for a Ray cluster: each job is a Ray task that runs `codeloop
fleet worker` on its node.
"""

import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.wire import JSON
from codeloop_automation.bounds import (
    FLEET_HEARTBEAT,
    FLEET_HOST_END,
    FLEET_POLL,
    FLEET_REPLY,
)
from codeloop_automation.fleet.driver import DriverLost, FleetStopped, JobTask, check_result
from codeloop_automation.fleet.remote.messages import apply_reply, pack_order


class RayDriver:
    """Runs agents on a Ray cluster. `address`: as in `ray.init`: `auto`,
    `HOST:6379` or `ray://HOST:10001`.
    """

    def __init__(self, address: str, codeloop: str, environment: Mapping[str, str]) -> None:
        """Connect. `codeloop`: the command of codeloop on a node. `environment`: for agents.
        Raises CodeloopError.
        """
        try:
            import ray
        except ImportError:
            raise UsageProblem(
                "`--on ray` needs Ray in the cluster's version where codeloop is installed: `pip install ray==X`."
            ) from None
        self.name = f"ray:{address}"
        self._ray = ray
        self._environment = environment
        self._command = [*shlex.split(codeloop), "fleet", "worker"]
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise CodeloopError(f"The Ray cluster {address} can't be reached: {error}") from None
        # Ray does not retry a task: the fleet's table gives a lost job out again.
        self._remote_function: Any = ray.remote(
            num_cpus=1, max_retries=0, scheduling_strategy="SPREAD"
        )(_make_remote_function())

    def run(
        self, task: JobTask, record_child: Callable[[int], None], is_stopping: Callable[[], bool]
    ) -> JSON:
        """See Driver."""
        # No process of this machine works on the job.
        del record_child
        order, bundle = pack_order(task, self._environment)
        bundle_content = bundle.read_bytes() if bundle.exists() else b""
        bundle.unlink(missing_ok=True)
        ray = self._ray
        try:
            task_reference = self._remote_function.remote(
                self._command,
                order + bundle_content,
                heartbeat_seconds=FLEET_HEARTBEAT.seconds,
                grace_seconds=FLEET_HOST_END.seconds,
                max_bytes=FLEET_REPLY.value,
            )
            while not ray.wait([task_reference], timeout=FLEET_POLL.seconds)[0]:
                if is_stopping():
                    self._cancel(task_reference)
                    raise FleetStopped("The fleet was stopped.")
            code, output, errors = ray.get(task_reference)
        except ray.exceptions.RayError as error:
            raise DriverLost(
                f"{self.name} lost the job: {str(error).strip().splitlines()[-1]}"
            ) from None
        if len(output) > FLEET_REPLY.value:
            raise CodeloopError(f"The job's changes are larger than {FLEET_REPLY.value:,} bytes.")
        output_file = task.folder / "answer"
        output_file.write_bytes(output)
        (task.folder / "log").write_bytes(errors)
        result = apply_reply(task, output_file, self.name)
        output_file.unlink()
        if result is None:
            raise DriverLost(f"{self.name} gave no result: {_describe_failure(code, errors)}")
        return check_result(result)

    def remove_remains(self, job_id: str) -> None:
        """Do nothing: a worker removes its files before it ends."""

    def end_remote_processes(self, job_id: str, attempt: int) -> None:
        """Do nothing: Ray ends the tasks of a coordinator that has ended,
        and a worker ends with its task.
        """

    def _cancel(self, task_reference: Any) -> None:
        """Cancel a task, so that its worker ends; kill it if that takes too long."""
        self._ray.cancel(task_reference)
        if not self._ray.wait([task_reference], timeout=FLEET_HOST_END.seconds)[0]:
            self._ray.cancel(task_reference, force=True)


def _describe_failure(code: int, errors: bytes) -> str:
    """Return why a worker ended without a result, and what to do."""
    log_tail = " ".join(errors.decode("utf-8", "replace").split())[-300:]
    if code == 127:
        return f"codeloop was not found on a node. Say how to start it with --codeloop. {log_tail}"
    return log_tail or f"the worker ended with {code}."


def _make_remote_function() -> Callable[
    [Sequence[str], bytes, float, float, int], tuple[int, bytes, bytes]
]:
    """Return the function that runs a job on a node."""
    # Ray sends the code of a nested function to the node, where the environment of Ray may lack
    # codeloop. So it imports nothing but the standard library, and gets the limits as arguments.

    def run_worker(
        command: Sequence[str],
        order: bytes,
        heartbeat_seconds: float,
        grace_seconds: float,
        max_bytes: int,
    ) -> tuple[int, bytes, bytes]:
        """Run a worker for an order; return its exit code, stdout and stderr."""
        import os
        import signal
        import subprocess
        import tempfile
        from contextlib import suppress

        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": output, "stderr": errors}
            try:
                program = subprocess.Popen(
                    command,
                    cwd="/",
                    env={**os.environ, "PWD": "/"},
                    start_new_session=True,
                    **streams,
                )
            except FileNotFoundError as error:
                return 127, b"", str(error).encode()
            assert program.stdin is not None
            try:
                with suppress(BrokenPipeError):
                    program.stdin.write(order)
                while True:
                    with suppress(BrokenPipeError):
                        program.stdin.flush()
                    with suppress(subprocess.TimeoutExpired):
                        program.wait(heartbeat_seconds)
                        break
                    with suppress(BrokenPipeError):
                        program.stdin.write(b".")
            finally:
                with suppress(BrokenPipeError):
                    # At the end of its stdin the worker ends with all that it has started.
                    program.stdin.close()
                try:
                    program.wait(grace_seconds)
                except subprocess.TimeoutExpired:
                    os.killpg(program.pid, signal.SIGKILL)
                    program.wait()
            output.seek(0)
            errors.seek(0)
            return program.returncode, output.read(max_bytes + 1), errors.read()[-65_536:]

    return run_worker
