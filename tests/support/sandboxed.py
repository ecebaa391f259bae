"""Whether commands can be sandboxed on this machine, and what tests need that are about something else."""

import asyncio
import os
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.process.shells import Shells
from codeloop.workspace.sandbox.policy import PolicyInput
from codeloop.workspace.sandbox.sandbox import Backend, SandboxRefused


@cache
def sandbox_here() -> str:
    """Return what enforces the sandbox here, "" where none can be had; tried once in a process."""
    with ThreadPoolExecutor(1) as thread:  # a test may run in a loop of its own
        return thread.submit(asyncio.run, _entered()).result()


def each_sandbox(*kinds: Backend) -> list[Any]:
    """Return `kinds` as parameters of a test: that which commands get here, and the others for `make slow`."""
    here = sandbox_here()
    return [pytest.param(kind, marks=() if kind == here else pytest.mark.slow) for kind in kinds]


def is_sandboxed() -> bool:
    """Return whether a sandbox can be had here."""
    return bool(sandbox_here())


async def _entered() -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))
        shells = Shells()
        try:
            policy = shells.policy(PolicyInput(folder, folder, folder, {}), SandboxConfig())
            return (await shells.sandboxes.enter(policy)).backend
        except SandboxRefused:
            return ""
        finally:
            await shells.close()


def with_commands(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings under which commands need no question, as in a sandbox; where none can be had a rule allows them.

    What the settings say of permissions comes after that rule; `{"bash": {}}` does without it.
    """
    given = settings.get("permission", {})
    bash = given.get("bash", {"*": "allow"}) if isinstance(given, dict) else {}
    if is_sandboxed() or not bash or isinstance(bash, str):
        return {**settings}
    return {**settings, "permission": {**given, "bash": {"*": "allow", **bash}}}
