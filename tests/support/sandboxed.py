"""Whether commands can be sandboxed on this machine, and what tests need that are about something else."""

import asyncio
import os
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.process.shells import Shells
from codeloop.workspace.sandbox.policy import SandboxPlace
from codeloop.workspace.sandbox.sandbox import SandboxRefused


@cache
def is_sandboxed() -> bool:
    """Return whether a sandbox can be had here; tried once in a process."""
    with ThreadPoolExecutor(1) as thread:  # a test may run in a loop of its own
        return thread.submit(asyncio.run, _enters()).result()


async def _enters() -> bool:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))
        shells = Shells()
        try:
            await shells.sandboxes.enter(shells.policy(SandboxPlace(folder, folder, folder, {}), SandboxConfig()))
        except SandboxRefused:
            return False
        else:
            return True
        finally:
            await shells.close()


def with_commands(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings under which commands need no question, as in a sandbox; where none can be had a rule allows them.

    What the settings say of permissions comes after that rule.
    """
    given = settings.get("permission", {})
    if isinstance(given, str) or is_sandboxed():
        return {**settings}
    return {**settings, "permission": {"bash": "allow", **given}}
