import os
from pathlib import Path
from typing import Any

import pytest

from codeloop.permission.gate import Denied
from codeloop.tool.builtin.search.grep import GrepParams, grep
from codeloop.tool.tool import ToolFailure, ToolResult
from tests.tool.context import TestContext, make_context


@pytest.fixture
def ctx(tmp_path: Path) -> TestContext:
    made = make_context(tmp_path)
    for age, (name, text) in enumerate({"old.py": "x = 1\nneedle\n", "new.py": "needle a\nb\nneedle c\n"}.items()):
        path = made.workspace.root / name
        path.write_text(text)
        os.utime(path, (1_000_000 + age, 1_000_000 + age))
    return made


async def run(ctx: TestContext, pattern: str, **more: Any) -> ToolResult:
    return await grep.run(GrepParams(pattern=pattern, **more), ctx)


async def test_matches_are_shown_by_file_newest_first(ctx: TestContext) -> None:
    result = await run(ctx, "needle")
    root = ctx.workspace.root
    assert result.output == (
        f"Found 3 matches\n{root}/new.py:\n  Line 1: needle a\n  Line 3: needle c\n\n{root}/old.py:\n  Line 2: needle"
    )
    assert (result.title, result.metadata) == ("needle", {"matches": 3, "truncated": False})


async def test_the_pattern_is_asked_for(ctx: TestContext) -> None:
    await run(ctx, "needle", path=".", include="*.py")
    (need,) = ctx.asked
    assert (need.permission, need.patterns, need.always) == ("grep", ("needle",), ("*",))
    assert need.metadata == {"pattern": "needle", "path": ".", "include": "*.py"}


async def test_nothing_found_is_a_fixed_line(ctx: TestContext) -> None:
    result = await run(ctx, "absent")
    assert (result.output, result.metadata) == ("No files found", {"matches": 0, "truncated": False})


async def test_context_lines_are_marked(ctx: TestContext) -> None:
    result = await run(ctx, "a$", context=1, path="new.py")
    assert result.output.splitlines()[2:] == ["  Line 1: needle a", "  Line 2- b"]


async def test_files_and_count_modes(ctx: TestContext) -> None:
    root = ctx.workspace.root
    assert (await run(ctx, "needle", mode="files")).output == f"Found 2 files\n{root}/new.py\n{root}/old.py"
    assert (await run(ctx, "needle", mode="count")).output == f"Found 3 matches\n{root}/new.py: 2\n{root}/old.py: 1"


async def test_at_most_a_hundred_matches_are_shown(ctx: TestContext) -> None:
    (ctx.workspace.root / "many.py").write_text("needle\n" * 500)
    result = await run(ctx, "needle", context=1)
    assert result.output.startswith("Found 503 matches (showing 100,")
    assert result.output.count("  Line ") == 100
    assert result.metadata == {"matches": 503, "truncated": True}


async def test_a_bad_expression_gives_the_reason(ctx: TestContext) -> None:
    with pytest.raises(ToolFailure, match="unclosed group"):
        await run(ctx, "a(")


async def test_outside_is_asked_about_first(tmp_path: Path) -> None:
    ctx = make_context(tmp_path, deny=["external_directory"])
    with pytest.raises(Denied):
        await run(ctx, "root", path="/etc/passwd")
    assert ctx.asked[0].patterns == ("/etc/*",)
    assert ctx.asked[0].metadata == {"filepath": "/etc/passwd", "parentDir": "/etc"}


async def test_a_denied_search_reads_nothing(tmp_path: Path) -> None:
    with pytest.raises(Denied):
        await run(make_context(tmp_path, deny=["grep:secret*"]), "secret")


async def test_a_missing_path_is_refused(ctx: TestContext) -> None:
    with pytest.raises(ToolFailure, match="There is no file or folder"):
        await run(ctx, "x", path="missing")


async def test_env_files_are_left_out_of_a_folder_and_asked_about_by_name(ctx: TestContext) -> None:
    root = ctx.workspace.root
    (root / "sub").mkdir()
    for name in (".env", "sub/.env.local", "a.env.example"):
        (root / name).write_text("needle KEY\n")
    (root / "link").symlink_to(".env")
    result = await run(ctx, "needle KEY")
    assert f"{root}/a.env.example:" in result.output
    assert "2 .env files that match are left out" in result.output
    assert "env.local" not in result.output
    assert "No files found (2 .env files" in (await run(ctx, "needle KEY", include="{.env,.env.*}")).output
    ctx.asked.clear()
    await run(ctx, "needle KEY", path="link")
    assert [(need.permission, need.patterns) for need in ctx.asked] == [("grep", ("needle KEY",)), ("read", (".env",))]
