from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.permission.gate import Denied
from codeloop.tool.builtin.search.list_ import FolderTree, ListParams, list_
from codeloop.tool.tool import ToolFailure
from tests.tool.context import TestContext, make_context


def write(ctx: TestContext, *names: str) -> None:
    for name in names:
        path = ctx.workspace.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


async def test_a_folder_is_shown_as_a_tree(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    write(ctx, "b.py", "src/deep/x.py", "src/a.py", ".git/config", "skipped.log")
    (ctx.workspace.root / ".gitignore").write_text("*.log\n")
    result = await list_.run(ListParams(), ctx)
    assert result.output == ("./\n  src/\n    deep/\n      x.py\n    a.py\n  .gitignore\n  b.py")
    assert (result.title, result.metadata) == ("", {"count": 4, "truncated": False})
    (need,) = ctx.asked
    assert (need.permission, need.patterns, need.always) == (
        "list",
        (str(ctx.workspace.root),),
        ("*",),
    )


async def test_patterns_leave_files_and_folders_out(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    write(ctx, "a.py", "b.txt", "build/c.py", "src/build/d.py")
    result = await list_.run(ListParams(ignore=["*.txt", "build"]), ctx)
    assert result.output == "./\n  a.py"


async def test_what_does_not_fit_is_shown_as_a_count(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    write(ctx, *(f"big/f{n}.py" for n in range(300)), "small/a.py", "top.py")
    result = await list_.run(ListParams(), ctx)
    lines = result.output.splitlines()
    assert lines[1:5] == ["  big/ (300 files)", "  small/", "    a.py", "  top.py"]
    assert "not shown whole" in lines[-1]
    assert result.metadata == {"count": 302, "truncated": True}
    below = await list_.run(ListParams(path="big"), ctx)
    assert below.title == "big"
    assert len(below.output.splitlines()) == 204
    assert "  ... and 100 more" in below.output


async def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    assert (await list_.run(ListParams(), make_context(tmp_path))).output.endswith(
        "/\n  (no files)"
    )


async def test_a_bad_pattern_a_file_and_outside_are_refused(tmp_path: Path) -> None:
    ctx = make_context(tmp_path, deny=["external_directory"])
    write(ctx, "f")
    with pytest.raises(ToolFailure, match="glob"):
        await list_.run(ListParams(ignore=["[a"]), ctx)
    with pytest.raises(ToolFailure, match="is a file"):
        await list_.run(ListParams(path="f"), ctx)
    with pytest.raises(Denied):
        await list_.run(ListParams(path="/"), ctx)


PATHS = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=4), max_size=60
)


@pytest.mark.slow
@given(PATHS, st.integers(1, 30))
def test_a_tree_never_takes_more_lines_than_its_budget(paths: list[list[str]], budget: int) -> None:
    files = {"/".join([*steps, "file"]) + str(index) for index, steps in enumerate(paths)}
    top = FolderTree()
    for path in files:
        top.add(path)
    complete = top.open(budget)
    lines = top.format_lines()
    assert len(lines) <= budget + 1
    shown = sum("file" in line and not line.endswith("files)") for line in lines)
    assert complete == (shown == len(files))


def test_which_folders_are_shown_whole_does_not_depend_on_the_order_of_the_search() -> None:
    paths = [f"{folder}/{number}" for folder in ("a", "b") for number in range(5)]
    shown: set[str] = set()
    for order in (paths, paths[::-1]):
        top = FolderTree()
        for path in order:
            top.add(path)
        assert not top.open(8)
        shown.add("\n".join(top.format_lines()))
    assert len(shown) == 1
