"""Runs git for a fleet's jobs, without hooks, signatures and questions, and so that it can be stopped."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from codeloop.automation.command_lines import make_git_command
from codeloop.automation.fleet.driver import Stopped
from codeloop.kit.processes import make_safe_environment
from codeloop.schema.bounds.automation import FLEET_GIT, FLEET_POLL
from codeloop.schema.errors import CodeloopError


def run_git(
    repository: str,
    *arguments: str,
    more: Mapping[str, str] | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> str:
    """Run a git command, and return its output. Raises Stopped soon after `is_stopping` returns True; CodeloopError.

    `repository`: the repository's name in errors; `more`: variables to add to the environment.
    """
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    environment = make_safe_environment({**os.environ, **quiet, **(more or {})})
    deadline = time.monotonic() + FLEET_GIT.seconds
    program = subprocess.Popen(
        make_git_command(*arguments, path=environment["PATH"]),
        cwd="/",
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that Ctrl-C does not end git, which would make the job fail instead of stop
    )
    try:
        output, errors = _wait(program, arguments[0], deadline, is_stopping)
    finally:
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)  # what it has started, too
            program.communicate()
    if program.returncode:
        words = errors.decode("utf-8", "replace").strip()
        raise CodeloopError(f"git failed for {repository}: {words}")
    return output.decode("utf-8", "replace")


def _wait(
    program: "subprocess.Popen[bytes]", name: str, deadline: float, is_stopping: Callable[[], bool]
) -> tuple[bytes, bytes]:
    """Return a program's stdout and stderr. Raises Stopped; CodeloopError: it takes too long."""
    while not is_stopping():
        with suppress(subprocess.TimeoutExpired):
            return program.communicate(timeout=FLEET_POLL.seconds)
        if time.monotonic() > deadline:
            raise CodeloopError(f"git {name} took longer than {FLEET_GIT.seconds:g} s.")
    raise Stopped("The fleet was stopped.")
