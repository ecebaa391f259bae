"""Tells whether commands can be sandboxed on this machine,
and lets tests of other things run commands anyway.
"""

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
from codeloop.workspace.sandbox.sandbox import Backend, SandboxUnavailable


@cache
def find_sandbox() -> str:
    """Return which kind of sandbox works here; "": none does. It is tried once in a process."""
    with ThreadPoolExecutor(1) as thread:  # the calling test may have a running event loop
        return thread.submit(asyncio.run, _try_sandbox()).result()


def list_sandbox_params(*kinds: Backend) -> list[Any]:
    """Return `kinds` as parameters of a test; all but the one that works here
    are for `make slow` only.
    """
    here = find_sandbox()
    return [pytest.param(kind, marks=() if kind == here else pytest.mark.slow) for kind in kinds]


def has_sandbox() -> bool:
    """Return whether a sandbox works here."""
    return bool(find_sandbox())


async def _try_sandbox() -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))
        shells = Shells()
        try:
            policy = shells.make_policy(PolicyInput(folder, folder, folder, {}), SandboxConfig())
            return (await shells.sandboxes.enter(policy)).backend
        except SandboxUnavailable:
            return ""
        finally:
            await shells.close()


def allow_commands(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in which commands need no permission: where no sandbox works,
    a rule that allows them is added.

    The permissions of the settings come after that rule; with `{"bash": {}}` the rule is not added.
    """
    given = settings.get("permission", {})
    bash = given.get("bash", {"*": "allow"}) if isinstance(given, dict) else {}
    if has_sandbox() or not bash or isinstance(bash, str):
        return {**settings}
    return {**settings, "permission": {**given, "bash": {"*": "allow", **bash}}}
