"""A folder of very many files: which of them may be read is looked up while
the loop keeps turning.
"""

from pathlib import Path

import pytest

from codeloop.tool.builtin.files.read import ReadParams, read
from codeloop.tool.builtin.search.grep import GrepParams, grep
from tests.freeze.ticker import check_loop_turns
from tests.tool.context import make_context


@pytest.mark.slow
async def test_outlines_and_searches(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    for name in map(str, range(5_000)):
        (ctx.workspace.root / f"{name}.py").write_text("def f(): pass\n")
    await check_loop_turns(lambda: read.run(ReadParams(".", symbol="*"), ctx))
    await check_loop_turns(lambda: grep.run(GrepParams(pattern="f", mode="files"), ctx))
