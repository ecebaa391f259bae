"""The loop keeps turning while a watched project's files change, whatever its ignore files say."""

import asyncio
import time
from pathlib import Path

from codeloop.workspace.watch.ignored import IgnoredFiles
from codeloop.workspace.watch.tree_watch import TreeWatch
from tests.freeze.ticker import LONGEST


async def test_the_loop_turns_while_many_files_appear_below_hostile_patterns(tmp_path: Path) -> None:
    folder = tmp_path / "/".join(["ab" * 60] * 4)
    folder.mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("\n".join(f"**/*a*{number:03}" for number in range(700)))
    tree = TreeWatch(tmp_path, None, IgnoredFiles(tmp_path, None, (), {}))
    try:
        await tree.scan()
        for number in range(100):
            (folder / f"{'ab' * 100}{number}").touch()
        loop, gaps, found = asyncio.get_running_loop(), list[float](), asyncio.create_task(tree.next())
        while not found.done():
            before = time.thread_time()
            turned = loop.create_future()
            loop.call_soon(turned.set_result, None)
            await turned
            gaps.append(time.thread_time() - before)
            await asyncio.sleep(0)
        assert len(await found) == 100
        assert max(gaps) < LONGEST, f"the loop stood still for {max(gaps) * 1000:.0f} ms"
    finally:
        tree.close()
