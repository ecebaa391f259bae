"""git for a fleet's jobs, without hooks, monitors, signatures and questions."""

import os
import subprocess
from collections.abc import Mapping

from codeloop.automation.git_program import git_command
from codeloop.kit.processes import with_absolute_path
from codeloop.schema.bounds.automation import FLEET_GIT
from codeloop.schema.errors import CodeloopError


def run_git(repository: str, *arguments: str, more: Mapping[str, str] | None = None) -> str:
    """Run one command and return what it prints. Raises CodeloopError.

    `repository`: what an error names; `more`: variables beside those of this process.
    """
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    environment = with_absolute_path({**os.environ, **quiet, **(more or {})})
    try:
        done = subprocess.run(
            git_command(*arguments, path=environment["PATH"]),
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=FLEET_GIT.seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CodeloopError(f"git {arguments[0]} took longer than {FLEET_GIT.seconds:g} s.") from None
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip()
        raise CodeloopError(f"git failed for {repository}: {words}")
    return done.stdout.decode("utf-8", "replace")
