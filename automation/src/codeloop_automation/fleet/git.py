"""Runs git for a fleet's jobs: without hooks, signatures and questions,
and so that a stop of the fleet can end it.

An agent may have written anything into a clone, so its configuration is never read.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from codeloop.kit.child_process import Launch
from codeloop.kit.git import GitCall
from codeloop.kit.program import run_program
from codeloop.kit.programs import make_safe_environment
from codeloop.schema.errors import CodeloopError
from codeloop_automation.bounds import FLEET_GIT, FLEET_POLL
from codeloop_automation.command_lines import open_git_call
from codeloop_automation.fleet.driver import FleetStopped

_MAX_OUTPUT_BYTES = 256 * 1024 * 1024


def run_git(
    name_in_errors: str,
    *arguments: str,
    tree: Path | None = None,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> str:
    """Run a git command, and return its output.

    `name_in_errors`: the repository, as errors name it; `tree`, `folder`: as of `open_git_call`;
    `variables`: to add to the environment. Raises FleetStopped soon after `is_stopping` returns
    True, and CodeloopError if git fails or takes too long.
    """
    # No questions on the terminal, and no downloads of large files that the job may not need.
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    environment = make_safe_environment({**os.environ, **quiet, **(variables or {})})
    with open_git_call(*arguments, environment=environment, tree=tree, folder=folder) as call:
        return asyncio.run(_run_call(call, name_in_errors, is_stopping))


async def _run_call(call: GitCall, name_in_errors: str, is_stopping: Callable[[], bool]) -> str:
    # In a session of its own: Ctrl-C would otherwise end git itself, and the job would count as
    # failed instead of stopped.
    launch = Launch(
        call.command, "/", call.environment, seconds=FLEET_GIT.seconds, max_bytes=_MAX_OUTPUT_BYTES
    )
    running = asyncio.create_task(run_program(launch))
    while not (await asyncio.wait([running], timeout=FLEET_POLL.seconds))[0]:
        if is_stopping():
            running.cancel()
            await asyncio.wait([running])
            raise FleetStopped("The fleet was stopped.")
    result = running.result()
    if result.stop_reason == "time":
        raise CodeloopError(f"git took longer than {FLEET_GIT.seconds:g} s for {name_in_errors}.")
    if result.stop_reason:
        raise CodeloopError(
            f"git printed more than {_MAX_OUTPUT_BYTES:,} bytes for {name_in_errors}."
        )
    if result.code:
        raise CodeloopError(f"git failed for {name_in_errors}: {result.error_text.strip()}")
    return result.stdout.decode("utf-8", "replace")
