"""Several edits of one file: in order, all or none."""

from pathlib import Path

import msgspec
import pytest

from codeloop.tool.builtin.files.edit import MultieditParams, OneEdit, multiedit
from codeloop.tool.tool import ToolFailure
from tests.tool.context import make_context


async def test_each_edit_works_on_the_result_of_the_one_before(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "a"
    file.write_text("one\ntwo\n")
    edits = [OneEdit("one", "three"), OneEdit("three\ntwo", "four\ntwo")]
    result = await multiedit.run(MultieditParams("a", edits), ctx)
    assert file.read_text() == "four\ntwo\n"
    assert result.metadata["filediff"]["additions"] == 1
    assert [need.permission for need in ctx.asked] == ["edit"]


async def test_nothing_is_written_when_one_edit_fails(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "a"
    file.write_text("one\ntwo\n")
    with pytest.raises(ToolFailure, match=r"edit 2 of 3: The text to replace was not found"):
        await multiedit.run(
            MultieditParams("a", [OneEdit("one", "x"), OneEdit("zzz", "y"), OneEdit("two", "z")]),
            ctx,
        )
    assert file.read_text() == "one\ntwo\n"
    assert ctx.asked == []


async def test_the_first_edit_may_make_the_file(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    await multiedit.run(MultieditParams("new", [OneEdit("", "a b\n"), OneEdit("b", "c")]), ctx)
    assert (ctx.workspace.root / "new").read_text() == "a c\n"


async def test_every_place_is_changed_on_request(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "a").write_text("x x\n")
    await multiedit.run(MultieditParams("a", [OneEdit("x", "y", replace_all=True)]), ctx)
    assert (ctx.workspace.root / "a").read_text() == "y y\n"


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"filePath": "a", "edits": []}, MultieditParams)
