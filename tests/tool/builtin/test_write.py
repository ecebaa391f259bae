"""The write tool on real files."""

import asyncio
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from codeloop.permission.gate import Denied
from codeloop.tool.builtin.files.read import ReadParams, read
from codeloop.tool.builtin.files.write import WriteParams, write
from codeloop.tool.tool import ToolFailure, ToolResult
from tests.tool.context import TestContext, make_context


async def run(ctx: TestContext, path: str | Path, content: str) -> ToolResult:
    return await write.run(WriteParams(str(path), content), ctx)


async def test_a_new_file_is_made_with_its_folders(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    result = await run(ctx, "a/b/c.txt", "grüße\n")
    assert (ctx.workspace.root / "a/b/c.txt").read_text(encoding="utf-8") == "grüße\n"
    assert result.title == "a/b/c.txt"
    assert result.metadata["exists"] is False
    assert result.metadata["filepath"] == str(ctx.workspace.root / "a/b/c.txt")
    assert "+grüße\n" in result.metadata["diff"]


async def test_a_file_that_was_not_read_is_not_overwritten(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "a"
    file.write_text("theirs\n")
    with pytest.raises(ToolFailure, match="not read in this session"):
        await run(ctx, file, "mine\n")
    assert file.read_text() == "theirs\n"


async def test_a_file_that_was_read_is_overwritten_unless_it_changed(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "a"
    file.write_text("one\n")
    await read.run(ReadParams("a"), ctx)
    assert (await run(ctx, file, "two\n")).metadata["exists"] is True
    assert (await run(ctx, file, "three\n")).metadata["filediff"]["deletions"] == 1
    file.write_text("theirs\n")
    with pytest.raises(ToolFailure, match="changed since it was read"):
        await run(ctx, file, "mine\n")
    assert file.read_text() == "theirs\n"


async def test_mode_link_mark_and_line_ends_stay(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    file, link = ctx.workspace.root / "a", ctx.workspace.root / "link"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    file.chmod(0o640)
    link.symlink_to("a")
    await read.run(ReadParams("link"), ctx)
    await run(ctx, link, "three\nfour\n")
    assert link.is_symlink()
    assert file.read_bytes() == b"\xef\xbb\xbfthree\r\nfour\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


async def test_the_encoding_stays_and_what_it_lacks_is_refused(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "a"
    file.write_bytes("déjà vu\n".encode("latin-1"))
    await read.run(ReadParams("a"), ctx)
    await run(ctx, file, "où\n")
    assert file.read_bytes() == "où\n".encode("latin-1")
    with pytest.raises(ToolFailure, match="has no"):
        await run(ctx, file, "中文\n")
    assert file.read_bytes() == "où\n".encode("latin-1")


async def test_nothing_is_written_when_leave_is_refused(tmp_path: Path) -> None:
    ctx = make_context(tmp_path, deny=["edit"])
    with pytest.raises(Denied):
        await run(ctx, "new/file", "x")
    assert list(ctx.workspace.root.iterdir()) == []
    assert "+x" in ctx.asked[0].metadata["diff"]


async def test_outside_is_asked_first(tmp_path: Path) -> None:
    ctx = make_context(tmp_path, deny=["external_directory"])
    with pytest.raises(Denied):
        await run(ctx, tmp_path / "elsewhere" / "f", "x")
    assert [need.permission for need in ctx.asked] == ["external_directory"]
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("path", ["folder", "folder/", "file/below"])
async def test_what_is_no_place_for_a_file_is_refused(tmp_path: Path, path: str) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "folder").mkdir()
    (ctx.workspace.root / "file").write_text("x")
    with pytest.raises(ToolFailure, match="director"):
        await run(ctx, path, "x")


async def test_half_a_character_is_refused(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    with pytest.raises(ToolFailure, match="half of a character"):
        await run(ctx, "a", "\ud800")
    assert not (ctx.workspace.root / "a").exists()


FLIP = """
import sys, time; from pathlib import Path
inside, outside, link, fresh = map(Path, sys.argv[1:])
while True:
    for place in (outside, inside):
        fresh.symlink_to(place)
        fresh.replace(link)
        time.sleep(0.0002)
"""


@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_a_link_that_flips_while_files_are_written_lets_no_byte_out(
    tmp_path: Path, count: int
) -> None:
    ctx = make_context(tmp_path, deny=["external_directory"])
    root, outside = ctx.workspace.root, tmp_path / "outside"
    (root / "inside").mkdir()
    outside.mkdir()
    places = [str(root / "inside"), str(outside), str(root / "link"), str(root / "fresh")]
    tries = 0
    with subprocess.Popen([sys.executable, "-c", FLIP, *places]) as flipping:
        try:
            end = time.monotonic() + 600
            while not (root / "link").is_symlink():
                await asyncio.sleep(0.01)
            # Both outcomes are wanted: a program that is held up leaves the link
            # as it is for many tries.
            while (
                tries < count or not any((root / "inside").iterdir())
            ) and time.monotonic() < end:
                with suppress(Denied, ToolFailure):
                    await run(ctx, f"link/{tries}", "data")
                tries += 1
        finally:
            flipping.kill()
    assert list(outside.iterdir()) == []
    assert len(list((root / "inside").iterdir())) > 0
    assert tries >= count
