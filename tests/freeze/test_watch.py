"""The loop keeps turning while a project is looked at and watched,
whatever its ignore files say.
"""

import asyncio
import gc
import time
from pathlib import Path

import pytest

from codeloop.workspace.git.tree_state import read_tree_state
from codeloop.workspace.watch.ignored_files import IgnoredFiles
from codeloop.workspace.watch.tree_watch import TreeWatch
from tests.freeze.ticker import MAX_STALL_SECONDS, check_loop_turns
from tests.support.machine_speed import measure_slowness
from tests.workspace.snapshot.trees_on_disk import git

HOSTILE = "\n".join(f"**/*a*{number:03}" for number in range(700))
DEEP = "/".join(["ab" * 60] * 4)


async def test_the_state_of_a_project_is_given_up_below_hostile_patterns(tmp_path: Path) -> None:
    folder = tmp_path / DEEP
    folder.mkdir(parents=True)
    (tmp_path / ".gitignore").write_text(HOSTILE)
    (folder / "tracked").touch()
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    for number in range(150):
        (folder / f"{'ab' * 100}{number}").touch()

    async def look() -> None:
        state = read_tree_state(tmp_path, {})
        assert state is not None
        assert state.untracked is None

    await check_loop_turns(look)


@pytest.mark.slow
async def test_the_loop_turns_while_many_files_appear_below_hostile_patterns(
    tmp_path: Path,
) -> None:
    folder = tmp_path / DEEP
    folder.mkdir(parents=True)
    (tmp_path / ".gitignore").write_text(HOSTILE)
    tree = TreeWatch(tmp_path, None, IgnoredFiles(tmp_path, None, (), {}))
    try:
        await tree.scan()
        for number in range(100):
            (folder / f"{'ab' * 100}{number}").touch()
        # A collection of the objects of earlier tests would take longer than the measured work.
        gc.collect()
        gc.freeze()
        loop, gaps, found = (
            asyncio.get_running_loop(),
            list[float](),
            asyncio.create_task(tree.wait_for_changes()),
        )
        while not found.done():
            before = time.thread_time()
            turned = loop.create_future()
            loop.call_soon(turned.set_result, None)
            await turned
            gaps.append(time.thread_time() - before)
            await asyncio.sleep(0)
        assert len(await found) == 100
        assert max(gaps) < MAX_STALL_SECONDS * measure_slowness(), (
            f"the loop stood still for {max(gaps) * 1000:.0f} ms"
        )
    finally:
        tree.close()
