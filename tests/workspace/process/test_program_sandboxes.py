"""Helper programs where no sandbox can be had: what is started, what is refused,
and what the user is told.
"""

import asyncio
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from codeloop.kit.child_process import Launch
from codeloop.schema.config import SandboxConfig
from codeloop.workspace.process import program_sandboxes
from codeloop.workspace.process.program_sandboxes import ProgramSandbox, ProgramSandboxes
from codeloop.workspace.sandbox.program_profile import ProgramProfile
from codeloop.workspace.sandbox.sandbox import SandboxUnavailable
from codeloop.workspace.sandbox.sandboxes import Sandboxes
from codeloop.workspace.workspace import Workspace


def make_sandboxes(
    folder: Path,
    mode: Literal["auto", "required"],
    warnings: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> ProgramSandboxes:
    """Return the sandboxes of a machine that has none."""
    monkeypatch.setattr(program_sandboxes, "Sandboxes", partial(Sandboxes, backends=()))
    root, scratch = folder / "project", folder / "data/scratch"
    for each in (root, scratch):
        each.mkdir(parents=True)
    workspace = Workspace(root, root, scratch, {"HOME": str(folder)}, SandboxConfig(mode=mode))
    return ProgramSandboxes(workspace, warnings.append, "MCP servers")


async def start_program(sandboxes: ProgramSandboxes, folder: Path) -> int:
    """Start a program and return its exit code."""
    launch = Launch(("/bin/sh", "-c", "exit 3"), folder, {}, {})
    process = await sandboxes.start(launch, ProgramSandbox(ProgramProfile(folder / "data/own")))
    return await asyncio.shield(process.exited)


@pytest.mark.parametrize("is_probed", [False, True])
async def test_a_program_never_runs_without_a_sandbox_that_is_required(
    is_probed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandboxes = make_sandboxes(tmp_path, "required", [], monkeypatch)
    try:
        if is_probed:
            await sandboxes.probe()
        with pytest.raises(SandboxUnavailable, match="The configuration requires one"):
            await start_program(sandboxes, tmp_path)
    finally:
        await sandboxes.close()


@pytest.mark.parametrize("is_probed", [False, True])
async def test_the_user_is_told_once_that_programs_run_without_a_sandbox(
    is_probed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    sandboxes = make_sandboxes(tmp_path, "auto", warnings, monkeypatch)
    try:
        if is_probed:
            await sandboxes.probe()
        assert not warnings
        assert [await start_program(sandboxes, tmp_path) for _ in range(2)] == [3, 3]
    finally:
        await sandboxes.close()
    (warning,) = warnings
    assert warning.startswith("No sandbox can be had on this machine")
