"""The tool `lsp`, as a model calls it, on a server that knows where words stand."""

import os
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from codeloop.lsp.client import work_progress
from codeloop.lsp.client.client import LanguageClient
from codeloop.lsp.client.document import read_text
from codeloop.lsp.client.file_uri import parse_file_uri
from codeloop.lsp.text_edits import apply_edits
from codeloop.permission.gate import Denied
from codeloop.schema.permission import PermissionRule
from tests.lsp.world import world
from tests.tool.context import make_context
from tests.tool.small_project import answer
from tests.tool.test_results import compare, piece

A = "def double(n)\n  return n * 2\n\ndef thrice(n)\n  return n * 3\n"
B = "print(double(2))\nprint(double(4))\nbad1\n"
CALLS: list[dict[str, Any]] = [
    {"operation": "definition", "filePath": "b.x:1", "symbol": "double"},
    {"operation": "definition", "filePath": "b.x", "line": 3, "symbol": "double"},
    {"operation": "references", "filePath": "a.x:1", "symbol": "double"},
    {"operation": "implementation", "filePath": "b.x:2", "symbol": "mod.double"},
    {"operation": "hover", "filePath": "b.x:1", "symbol": "double"},
    {"operation": "documentSymbols", "filePath": "a.x"},
    {"operation": "workspaceSymbols", "filePath": "a.x", "symbol": "dou"},
    {"operation": "workspaceSymbols", "filePath": "a.x", "symbol": "nothing"},
    {"operation": "incomingCalls", "filePath": "a.x:1", "symbol": "double"},
    {"operation": "outgoingCalls", "filePath": "a.x:1", "symbol": "double"},
    {"operation": "supertypes", "filePath": "a.x:1", "symbol": "double"},
    {"operation": "diagnostics", "filePath": "b.x"},
    {"operation": "diagnostics", "filePath": "a.x"},
    {"operation": "rename", "filePath": "b.x:2", "symbol": "double", "newName": "twice"},
    {"operation": "rename", "filePath": "b.x:2", "symbol": "twice"},
    {"operation": "definition", "filePath": "b.x:1"},
    {"operation": "definition", "filePath": "b.x:1", "symbol": "missing"},
    {"operation": "definition", "filePath": "none.x:1", "symbol": "double"},
    {"operation": "hover", "filePath": "c.txt:1", "symbol": "double"},
]


async def test_a_model_reads_exactly_this(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    root = ctx.workspace.root
    async with world(tmp_path, "knows", ctx=ctx):
        for name, text in (("a.x", A), ("b.x", B), ("c.txt", "double\n")):
            (root / name).write_text(text)
        pieces: list[str] = []
        for given in CALLS:
            text, done = await answer(ctx, "lsp", given)
            pieces.append(piece("lsp", given, text, tmp_path, done=done))
        compare("lsp", pieces)
        assert (root / "a.x").read_text() == A.replace("double", "twice")
        assert (root / "b.x").read_text() == B.replace("double", "twice")
    assert [need.permission for need in ctx.asked if need.permission != "read"] == ["edit"]


async def test_a_rename_that_is_forbidden_changes_nothing(tmp_path: Path) -> None:
    ctx = make_context(tmp_path, deny=("edit:b.x",))
    root = ctx.workspace.root
    async with world(tmp_path, "knows", ctx=ctx):
        (root / "a.x").write_text(A)
        (root / "b.x").write_text(B)
        with pytest.raises(Denied):
            await answer(
                ctx,
                "lsp",
                {"operation": "rename", "filePath": "a.x:1", "symbol": "double", "newName": "z"},
            )
        assert (root / "a.x").read_text() == A


async def test_a_server_that_lost_its_place_is_asked_again(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "a.x").write_text(A)
    async with world(tmp_path, "knows", "outdated", ctx=ctx):
        text, done = await answer(
            ctx, "lsp", {"operation": "references", "filePath": "a.x:1", "symbol": "double"}
        )
    assert done
    assert text == "a.x:1: def double(n)"


async def test_nothing_is_told_of_a_name_whose_file_may_not_be_read(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    ctx.rules = (PermissionRule(permission="read", pattern="a.x", action="deny"),)
    root = ctx.workspace.root
    (root / "a.x").write_text(A)
    (root / "b.x").write_text(B)
    async with world(tmp_path, "knows", ctx=ctx):
        text, done = await answer(
            ctx, "lsp", {"operation": "hover", "filePath": "b.x:1", "symbol": "double"}
        )
        assert (text, done) == ("double is defined in a.x:1, which may not be read.", False)
        text, _ = await answer(
            ctx, "lsp", {"operation": "references", "filePath": "b.x:1", "symbol": "double"}
        )
        assert text == "a.x:1\nb.x:1: print(double(2))\nb.x:2: print(double(4))"


async def test_a_link_that_a_server_names_shows_nothing_of_keys_or_of_other_places(
    tmp_path: Path,
) -> None:
    ctx = make_context(tmp_path)
    ctx.rules = ()
    root = ctx.workspace.root
    (tmp_path / "outside").write_text("double(OUTSIDE)\n")
    (root / ".env").write_text("double(KEY)\n")
    (root / "a.x").write_text(A)
    (root / "env.x").symlink_to(".env")
    (root / "out.x").symlink_to(tmp_path / "outside")
    async with world(tmp_path, "knows", ctx=ctx):
        text, _ = await answer(
            ctx, "lsp", {"operation": "references", "filePath": "a.x:1", "symbol": "double"}
        )
    assert "env.x:1" in text
    assert "OUTSIDE" not in text
    assert "KEY" not in text


def test_what_a_server_names_is_read_only_where_it_is_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (
        "/dev/zero",
        str(tmp_path / "pipe"),
        str(tmp_path),
        str(tmp_path / "none"),
        "/a\0b",
    ):
        assert read_text(Path(path)) is None, path
    assert parse_file_uri("file:///a%00b") is None
    assert parse_file_uri("file:a/b") is None


@pytest.mark.slow
def test_a_hundred_thousand_edits_are_made_in_one_go() -> None:
    text, client = "a\n" * 100_000, Mock(encoding="utf-16")
    place = [{"line": line, "character": 0} for line in range(100_000)]
    edits = [
        {"range": {"start": at, "end": {**at, "character": 1}}, "newText": "bb"} for at in place
    ]
    assert apply_edits(client, text, edits) == "bb\n" * 100_000
    for line in (-1, "x", None):
        with pytest.raises(ValueError, match=r"edit|literal"):
            apply_edits(
                client,
                text,
                [
                    {
                        "range": {"start": {"line": line, "character": 0}, "end": place[0]},
                        "newText": "",
                    }
                ],
            )


async def test_what_is_changed_beside_us_is_seen(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "a.x"
    async with world(tmp_path, "knows", ctx=ctx):
        file.write_text(A)
        await answer(ctx, "lsp", {"operation": "documentSymbols", "filePath": "a.x"})
        file.write_text("def other(n)\n  return n\n")
        text, _ = await answer(ctx, "lsp", {"operation": "documentSymbols", "filePath": "a.x"})
        assert text == "1-2: function other"


async def test_the_first_question_waits_for_a_server_that_looks_at_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "a.x").write_text(A)
    (ctx.workspace.root / "b.x").write_text(B)
    monkeypatch.setattr(work_progress, "_START_OF_WORK_SECONDS", 60)
    async with world(tmp_path, "knows", "indexes=0.6", ctx=ctx):
        given = {"operation": "definition", "filePath": "b.x:1", "symbol": "double"}
        text, done = await answer(ctx, "lsp", given)
    assert (text, done) == ("a.x:1\n1: def double(n)\n2:   return n * 2", True)


async def test_the_first_question_waits_for_a_server_that_took_long_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = LanguageClient.__init__

    def make(it: LanguageClient, *given: Any) -> None:
        """Make the client of a program that was started a minute ago."""
        made(it, *given)
        it.progress.started_at -= 60

    monkeypatch.setattr(LanguageClient, "__init__", make)
    monkeypatch.setattr(work_progress, "_START_OF_WORK_SECONDS", 60)
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "a.x").write_text(A)
    (ctx.workspace.root / "b.x").write_text(B)
    async with world(tmp_path, "knows", "begins=0.6", "indexes=0.6", ctx=ctx):
        given = {"operation": "definition", "filePath": "b.x:1", "symbol": "double"}
        text, _ = await answer(ctx, "lsp", given)
    assert text.startswith("a.x:1\n")


async def test_a_place_in_a_file_that_the_server_does_not_open_is_shown_by_its_line(
    tmp_path: Path,
) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "a.x").write_text(A)
    (ctx.workspace.root / "b.y").write_text(B)
    async with world(tmp_path, "knows", ctx=ctx, languages={".x": "x", ".y": "y"}):
        text, done = await answer(
            ctx, "lsp", {"operation": "definition", "filePath": "b.y:1", "symbol": "double"}
        )
    assert (text, done) == ("a.x:1: def double(n)", True)
