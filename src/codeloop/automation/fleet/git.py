"""Runs git for a fleet's jobs: without hooks, signatures and questions, and so that a stop of the fleet can end it.

An agent may have written anything into a clone, so its configuration is never read.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from codeloop.automation.command_lines import open_git_call
from codeloop.automation.fleet.driver import FleetStopped
from codeloop.kit.git import GitCall
from codeloop.kit.programs import make_safe_environment
from codeloop.schema.bounds.automation import FLEET_GIT, FLEET_POLL
from codeloop.schema.errors import CodeloopError


def run_git(
    name_in_errors: str,
    *arguments: str,
    tree: Path | None = None,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> str:
    """Run a git command, and return its output.

    `name_in_errors`: the repository, as errors name it; `tree`, `folder`: as of `open_git_call`; `variables`: to add to
    the environment. Raises FleetStopped soon after `is_stopping` returns True, and CodeloopError if git fails or takes
    too long.
    """
    # No questions on the terminal, and no downloads of large files that the job may not need.
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    environment = make_safe_environment({**os.environ, **quiet, **(variables or {})})
    with open_git_call(*arguments, environment=environment, tree=tree, folder=folder) as call:
        return _run_call(call, name_in_errors, is_stopping)


def _run_call(call: GitCall, name_in_errors: str, is_stopping: Callable[[], bool]) -> str:
    deadline = time.monotonic() + FLEET_GIT.seconds
    program = subprocess.Popen(
        call.command,
        cwd="/",
        env=call.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Ctrl-C would otherwise end git itself, and the job would count as failed instead of stopped.
        start_new_session=True,
    )
    try:
        output, errors = _wait_for_output(program, name_in_errors, deadline, is_stopping)
    finally:
        if program.poll() is None:
            # The group: git starts other programs, such as ssh and index-pack.
            os.killpg(program.pid, signal.SIGKILL)
            program.communicate()
    if program.returncode:
        message = errors.decode("utf-8", "replace").strip()
        raise CodeloopError(f"git failed for {name_in_errors}: {message}")
    return output.decode("utf-8", "replace")


def _wait_for_output(
    program: "subprocess.Popen[bytes]", name_in_errors: str, deadline: float, is_stopping: Callable[[], bool]
) -> tuple[bytes, bytes]:
    """Return a program's stdout and stderr. Raises FleetStopped, and CodeloopError if it takes too long."""
    while not is_stopping():
        with suppress(subprocess.TimeoutExpired):
            return program.communicate(timeout=FLEET_POLL.seconds)
        if time.monotonic() > deadline:
            raise CodeloopError(f"git took longer than {FLEET_GIT.seconds:g} s for {name_in_errors}.")
    raise FleetStopped("The fleet was stopped.")
