"""Names of files that rules deny by path are not listed;
a deny to read one keeps its content alone.
"""

from pathlib import Path

import pytest

from codeloop.schema.permission import PermissionRule
from codeloop.tool.builtin.files.read import ReadParams, read
from codeloop.tool.builtin.search.glob import GlobParams, glob
from codeloop.tool.builtin.search.grep import GrepParams, grep
from codeloop.tool.builtin.search.list_ import ListParams, list_
from tests.tool.context import TestContext, make_context

ALLOW = PermissionRule(permission="*", pattern="*", action="allow")


def make(tmp_path: Path, *denied: str) -> TestContext:
    ctx = make_context(tmp_path)
    for name in ("src/a.txt", "secret/plan.txt", "other.txt"):
        file = ctx.workspace.root / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("needle\n")
    ctx.rules = (
        ALLOW,
        *(PermissionRule(permission=each, pattern="secret/*", action="deny") for each in denied),
    )
    return ctx


async def show(ctx: TestContext, name: str) -> str:
    match name:
        case "glob":
            return (await glob.run(GlobParams(pattern="**/*.txt"), ctx)).output
        case "list":
            return (await list_.run(ListParams(), ctx)).output
        case "read":
            return (
                await read.run(ReadParams(file_path=str(ctx.workspace.root / "secret")), ctx)
            ).output
        case _:
            return (await grep.run(GrepParams(pattern="needle", mode="files"), ctx)).output


@pytest.mark.parametrize(
    ("tool", "permission"), [("glob", "glob"), ("list", "list"), ("read", "list"), ("grep", "grep")]
)
async def test_a_deny_by_path_hides_the_name_and_that_is_told(
    tmp_path: Path, tool: str, permission: str
) -> None:
    shown = await show(make(tmp_path, permission), tool)
    assert "plan.txt" not in shown
    assert "left out" in shown
    assert tool == "read" or "other.txt" in shown
    assert "plan.txt" in await show(make(tmp_path / "again"), tool)


@pytest.mark.parametrize(("tool", "is_named"), [("glob", True), ("list", True), ("grep", False)])
async def test_a_deny_to_read_keeps_the_content_alone(
    tmp_path: Path, tool: str, *, is_named: bool
) -> None:
    shown = await show(make(tmp_path, "read"), tool)
    assert ("plan.txt" in shown) == is_named
