"""The loop keeps turning while a large project is looked at for its sandbox."""

import asyncio
from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.process.shells import Shells
from codeloop.workspace.sandbox.policy import PolicyInput
from tests.freeze.ticker import check_loop_turns

FOLDERS, FILES = 60, 1_000


@pytest.mark.slow
async def test_the_loop_turns_while_a_project_of_many_files_is_looked_at(tmp_path: Path) -> None:
    root = tmp_path / "work"
    for folder in range(FOLDERS):
        (root / f"folder{folder}").mkdir(parents=True)
        for file in range(FILES):
            (root / f"folder{folder}/file{file}").touch()
    (root / "folder7/.env").write_text("A=b")
    shells, config = Shells(), SandboxConfig()
    place = PolicyInput(
        root, root, tmp_path / "scratch", {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    )

    async def commands() -> None:
        for _ in range(5):
            await shells.scan_work_tree(place, config)
            assert root / "folder7/.env" in shells.make_policy(place, config).hidden
            await asyncio.sleep(0)

    try:
        await check_loop_turns(commands)
    finally:
        await shells.close()
