import os
from pathlib import Path

import pytest

from codeloop.permission.gate import Denied
from codeloop.tool.builtin.search.glob import GlobParams, glob
from codeloop.tool.tool import ToolFailure, ToolResult
from tests.tool.context import TestContext, make_context


def write(ctx: TestContext, *names: str) -> None:
    for age, name in enumerate(names):
        path = ctx.workspace.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        os.utime(path, (1_000_000 + age, 1_000_000 + age))


async def run(ctx: TestContext, pattern: str, path: str | None = None) -> ToolResult:
    return await glob.run(GlobParams(pattern=pattern, path=path), ctx)


async def test_paths_relative_to_the_directory_one_a_line_newest_first(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    write(ctx, "a.py", "src/b.py", "c.txt")
    result = await run(ctx, "*.py")
    assert result == ToolResult("", "src/b.py\na.py", {"count": 2, "truncated": False})


async def test_the_pattern_is_asked_for(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    write(ctx, "src/b.py")
    assert (await run(ctx, "*.py", "src")).title == "src"
    (need,) = ctx.asked
    assert (need.permission, need.patterns, need.always) == ("glob", ("*.py",), ("*",))
    assert need.metadata == {"pattern": "*.py", "path": "src"}


async def test_nothing_found_is_a_fixed_line(tmp_path: Path) -> None:
    result = await run(make_context(tmp_path), "*.py")
    assert (result.output, result.metadata) == ("No files found", {"count": 0, "truncated": False})


async def test_at_most_a_hundred_are_shown_and_the_rest_is_said(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    write(ctx, *(f"f{n:03}.py" for n in range(130)))
    result = await run(ctx, "*.py")
    lines = result.output.splitlines()
    assert lines[0] == "f129.py"
    assert lines[99] == "f030.py"
    assert "100 of 130" in lines[-1]
    assert result.metadata == {"count": 100, "truncated": True}


@pytest.mark.parametrize("form", ["{root}/src/*.py", "../{name}/src/*.py"])
async def test_a_pattern_may_name_its_folder(tmp_path: Path, form: str) -> None:
    ctx = make_context(tmp_path)
    write(ctx, "src/b.py", "a.py", "srcs/c.py")
    result = await run(ctx, form.format(root=ctx.workspace.root, name=ctx.workspace.root.name))
    assert result.output == "src/b.py"


@pytest.mark.parametrize("form", ["{root}/src/**/*.py", "../{name}/src/**/*.py", "src/**/*.py"])
async def test_a_pattern_with_two_stars_reaches_every_folder_below_the_one_that_it_names(
    tmp_path: Path, form: str
) -> None:
    ctx = make_context(tmp_path)
    write(ctx, "src/b.py", "src/deep/er/c.py", "a.py")
    result = await run(ctx, form.format(root=ctx.workspace.root, name=ctx.workspace.root.name))
    assert result.output == "src/deep/er/c.py\nsrc/b.py"


async def test_a_pattern_with_a_folder_does_not_reach_below_it(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    write(ctx, "src/b.py", "src/deep/c.py")
    for pattern in (f"{ctx.workspace.root}/src/*.py", "src/*.py"):
        assert (await run(ctx, pattern)).output == "src/b.py"


@pytest.mark.parametrize(
    ("pattern", "path"), [("*", "/etc"), ("/etc/*", None), ("../*", None), ("*", "link")]
)
async def test_outside_is_asked_about_first(tmp_path: Path, pattern: str, path: str | None) -> None:
    ctx = make_context(tmp_path, deny=["external_directory"])
    (ctx.workspace.root / "link").symlink_to("/etc")
    with pytest.raises(Denied):
        await run(ctx, pattern, path)
    assert [need.permission for need in ctx.asked] == ["external_directory"]
    assert set(ctx.asked[0].metadata) == {"filepath", "parentDir"}
    assert all(one.endswith("/*") for one in ctx.asked[0].patterns)


@pytest.mark.parametrize(
    ("pattern", "path", "reason"),
    [
        ("[a", None, "never closed"),
        ("*", "no", "no file"),
        ("*", "~nobody/x", "no file"),
        ("*", "a\0b", "NUL"),
        ("a\0", None, "NUL"),
        ("*", "f", "is a file"),
    ],
)
async def test_bad_input_is_refused_with_the_reason(
    tmp_path: Path, pattern: str, path: str | None, reason: str
) -> None:
    ctx = make_context(tmp_path)
    write(ctx, "f")
    with pytest.raises(ToolFailure, match=reason):
        await run(ctx, pattern, path)


async def test_a_name_that_is_not_utf8_is_shown_escaped(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    Path(os.fsdecode(os.fsencode(ctx.workspace.root) + b"/bad\xff.py")).write_text("x")
    assert (await run(ctx, "*.py")).output == "bad\\xff.py"
