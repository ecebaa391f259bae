"""The edit tool on real files."""

import asyncio
import stat
from pathlib import Path

import msgspec
import pytest

from codeloop.permission.gate import Denied
from codeloop.schema.live_events import FileEdited
from codeloop.schema.permission import Need, PermissionRule
from codeloop.tool.builtin.files.edit import EditParams, edit
from codeloop.tool.builtin.files.read import ReadParams, read
from codeloop.tool.builtin.files.write import WriteParams, write
from codeloop.tool.builtin.search.grep import GrepParams, grep
from codeloop.tool.tool import ToolFailure, ToolResult, format_for_model
from tests.tool.context import TestContext, make_context


async def run(
    ctx: TestContext, path: str | Path, old: str, new: str, *, every: bool = False
) -> ToolResult:
    return await edit.run(EditParams(str(path), old, new, every), ctx)


async def see(ctx: TestContext, path: str | Path) -> None:
    await read.run(ReadParams(str(path)), ctx)


async def test_an_edit_changes_the_file_and_shows_the_diff(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "calc.py"
    file.write_text("def add(a, b):\n    return a - b\n")
    result = await run(ctx, "calc.py", "return a - b", "return a + b")
    assert file.read_text() == "def add(a, b):\n    return a + b\n"
    assert result.title == "calc.py"
    assert result.output == "Edited calc.py: line 2"
    patch = result.metadata["diff"]
    assert patch.startswith(
        f"Index: {file}\n" + "=" * 67 + f"\n--- {file}\n+++ {file}\n@@ -1,2 +1,2 @@\n"
    )
    assert result.metadata["filediff"] == {
        "file": str(file),
        "patch": patch,
        "additions": 1,
        "deletions": 1,
    }
    assert result.metadata["diagnostics"] == {}


async def test_the_answer_names_the_changed_lines_of_the_new_file_and_how_the_text_was_matched(
    tmp_path: Path,
) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "sub" / "a.py"
    file.parent.mkdir()
    file.write_text("".join(f"{n}\n" for n in range(1, 31)) + "    x = 1\n    y = 2\n")
    await see(ctx, file)
    everywhere = await run(ctx, file, "7\n", "seven\nand a half\n", every=True)
    assert everywhere.output == "Edited sub/a.py: lines 7-8, 18-19, 29-30"
    assert (
        await run(ctx, file, "13\n14\n", "")
    ).output == "Edited sub/a.py: lines removed after 13"
    assert (await run(ctx, "sub/a.py", "x = 1\ny = 2", "x = 1\ny = 3")).output == (
        "Edited sub/a.py: line 33 (oldString was matched ignoring indentation)\n"
        "What was replaced:\n-    y = 2\n+    y = 3"
    )
    assert (await run(ctx, "sub/new.py", "", "a\nb\n")).output == "Created sub/new.py: 2 lines"


async def test_leave_is_asked_with_the_diff_before_anything_is_written(tmp_path: Path) -> None:
    ctx = make_context(tmp_path, deny=["edit"])
    file = ctx.workspace.root / "sub" / "a.txt"
    file.parent.mkdir()
    file.write_text("one\n")
    with pytest.raises(Denied):
        await run(ctx, file, "one", "two")
    (need,) = ctx.asked
    assert (need.permission, need.patterns, need.always) == ("edit", ("sub/a.txt",), ("*",))
    assert need.metadata["filepath"] == str(file)
    assert "-one\n+two\n" in need.metadata["diff"]
    assert file.read_text() == "one\n"


async def test_a_text_that_stands_once_in_a_file_that_changed_since_is_replaced_and_the_change_is_said(
    tmp_path: Path,
) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "a.txt"
    file.write_text("one\n")
    await see(ctx, file)
    file.write_text("one\ntheirs\n")
    for old, new in (("one", "two"), ("two", "three")):
        output = (await run(ctx, file, old, new)).output
        assert output.startswith("Edited a.txt: line 1\n(The file had changed since you read it.")
    with pytest.raises(ToolFailure, match="changed since it was read"):
        await write.run(WriteParams("a.txt", "three\n"), ctx)
    await see(ctx, file)
    assert (await run(ctx, file, "three", "four")).output == "Edited a.txt: line 1"
    assert file.read_text() == "four\ntheirs\n"


@pytest.mark.parametrize(
    ("old", "every"),
    [("x  =  1", False), ("zz", False), ("y", True)],
    ids=["resembles", "missing", "every place"],
)
async def test_another_edit_of_a_file_that_changed_since_is_refused(
    tmp_path: Path, old: str, *, every: bool
) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "a.txt"
    file.write_text("x = 1\ny\n")
    await see(ctx, file)
    file.write_text("x = 1\ny\ny\n")
    with pytest.raises(ToolFailure, match="changed since it was read"):
        await run(ctx, file, old, "x", every=every)
    assert file.read_text() == "x = 1\ny\ny\n"


async def test_lines_that_a_search_has_shown_whole_may_be_edited_as_if_they_were_read(
    tmp_path: Path,
) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "a.py").write_text(
        "def one():\n    x = 1\n    return x\n\n\ndef two():\n    y = 2\n    return y\n"
    )
    await grep.run(GrepParams(pattern="x = 1", block=True), ctx)
    with pytest.raises(ToolFailure, match="was not read in this session"):
        await run(ctx, "a.py", "y = 2\nreturn y", "y = 3\nreturn y")
    result = await run(ctx, "a.py", "x = 1\nreturn x", "x = 2\nreturn x")
    assert result.output.startswith(
        "Edited a.py: line 2 (oldString was matched ignoring indentation)"
    )
    with pytest.raises(ToolFailure, match="was not read in this session"):
        await run(make_context(tmp_path), "a.py", "x = 2\nreturn x", "x = 3\nreturn x")


@pytest.mark.parametrize(
    "line",
    [
        "// ... rest of the code",
        "# ... existing code ...",
        "    ...rest unchanged",
        "<!-- rest of the file ... -->",
    ],
)
async def test_a_line_that_stands_for_others_is_asked_about_once(tmp_path: Path, line: str) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "a.js"
    file.write_text("one();\n")
    with pytest.raises(ToolFailure, match=r"Line 2 of a\.js would be"):
        await run(ctx, file, "one();", f"two();\n{line}\n")
    assert file.read_text() == "one();\n"
    await run(ctx, file, "one();", f"two();\n{line}\n")
    await run(ctx, file, "two();", "three();")
    assert line in file.read_text()


@pytest.mark.parametrize(
    "line", ["...rest,", "const {a, ...rest} = b", "    ...", "# The rest of it", "f(...args)"]
)
async def test_dots_of_a_language_are_no_question(tmp_path: Path, line: str) -> None:
    ctx = make_context(tmp_path)
    await run(ctx, "a.js", "", f"{line}\n")
    assert (ctx.workspace.root / "a.js").read_text() == f"{line}\n"


@pytest.mark.parametrize(
    ("new", "line"),
    [
        ("return total(amount)", 0),
        ("    return total(amount)", 3),
        ("a = 1", 0),
        ("def f(amount):\n    b = 2\n", 1),
    ],
)
async def test_a_new_text_is_there_already_when_its_whole_lines_are(
    tmp_path: Path, new: str, line: int
) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "a.py").write_text(
        "def f(amount):\n    b = 2\n    return total(amount)\na = 1\n"
    )
    with pytest.raises(ToolFailure) as error:
        await run(ctx, "a.py", "zzzzzzzz", new)
    assert ("newString is already there" in format_for_model(error.value)) == bool(line)
    assert not line or f"at line {line}." in format_for_model(error.value)


class Meddling(TestContext):
    """A context in which the file changes while the person thinks about the question."""

    async def ask(self, *needs: Need) -> bool:
        if any(need.permission == "edit" for need in needs):
            (self.workspace.root / "a.txt").write_text("theirs\n")
        return await super().ask(*needs)


async def test_a_file_that_changes_while_leave_is_asked_is_refused(tmp_path: Path) -> None:
    plain = make_context(tmp_path)
    ctx = Meddling(plain.session_id, plain.message_id, plain.call_id, plain.workspace, plain.store)
    file = ctx.workspace.root / "a.txt"
    file.write_text("one\n")
    with pytest.raises(ToolFailure, match="changed after it was read"):
        await run(ctx, file, "one", "two")
    assert file.read_text() == "theirs\n"


async def test_a_place_that_only_resembles_needs_a_file_that_was_read(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "a.py"
    file.write_text("if x:\n        y = 1\n")
    with pytest.raises(
        ToolFailure, match=r"oldString is not in a\.py as given, only a text like it.* was not read"
    ):
        await run(ctx, file, "y  =  1", "y = 2")
    await see(ctx, file)
    await run(ctx, file, "y  =  1", "y = 2")
    assert file.read_text() == "if x:\n        y = 2\n"


async def test_parallel_edits_of_one_file_all_land(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "a.txt"
    file.write_text("".join(f"line {n};\n" for n in range(20)))
    (ctx.workspace.root / "alias").symlink_to(file)
    await see(ctx, file)
    names = ["a.txt", "alias"]
    await asyncio.gather(*(run(ctx, names[n % 2], f"line {n};", f"done {n};") for n in range(20)))
    assert file.read_text() == "".join(f"done {n};\n" for n in range(20))


async def test_an_edit_after_an_edit_needs_no_new_read(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "a.txt"
    file.write_text("one\n")
    await see(ctx, file)
    await run(ctx, file, "one", "two")
    await run(ctx, file, "two", "three")
    assert file.read_text() == "three\n"


async def test_an_empty_old_string_makes_a_file_but_never_replaces_one(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "new" / "a.txt"
    await run(ctx, file, "", "text\n")
    assert file.read_text() == "text\n"
    with pytest.raises(ToolFailure, match="exists"):
        await run(ctx, file, "", "other")
    assert file.read_text() == "text\n"


async def test_mode_and_link_stay(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    file, link = ctx.workspace.root / "run.sh", ctx.workspace.root / "link.sh"
    file.write_text("echo 1\n")
    file.chmod(0o755)
    link.symlink_to("run.sh")
    await run(ctx, link, "echo 1", "echo 2")
    assert link.is_symlink()
    assert file.read_text() == "echo 2\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o755


async def test_a_binary_file_is_refused_untouched(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "a.bin"
    file.write_bytes(b"one\0two")
    with pytest.raises(ToolFailure, match="binary"):
        await run(ctx, file, "one", "x")
    assert file.read_bytes() == b"one\0two"


@pytest.mark.parametrize(
    "route", ["chain", "relative", "directory", "dangling", "proc", "dots", "sibling", "slashes"]
)
async def test_a_path_that_leads_out_is_asked_by_its_real_target(
    tmp_path: Path, route: str
) -> None:
    ctx = make_context(tmp_path, deny=["external_directory"], root=tmp_path / "app")
    root, outside = ctx.workspace.root, tmp_path / "app-evil"
    outside.mkdir()
    secret = outside / "f"
    if route != "dangling":
        secret.write_text("secret\n")
    (root / "one").symlink_to("two")
    (root / "two").symlink_to(secret)
    (root / "relative").symlink_to("../app-evil/f")
    (root / "folder").symlink_to(outside)
    paths = {
        "chain": "one", "relative": "relative", "directory": "folder/f", "dangling": "two",
        "proc": f"/proc/self/root{secret}", "dots": "../app-evil/f", "sibling": str(secret),
        "slashes": f"//{str(root)[1:]}//..//app-evil/f",
    }  # fmt: skip
    old = "" if route == "dangling" else "secret"
    with pytest.raises(Denied):
        await run(ctx, paths[route], old, "mine")
    (need,) = ctx.asked
    assert need.permission == "external_directory"
    assert (need.patterns, need.always) == ((str(secret),), (f"{outside}/*",))
    assert need.metadata | {"diff": ""} == {
        "filepath": str(secret),
        "parentDir": str(outside),
        "diff": "",
    }
    assert "+mine" in need.metadata["diff"]
    assert secret.exists() == (route != "dangling")
    assert route == "dangling" or secret.read_text() == "secret\n"


async def test_what_lies_under_git_is_a_question_that_always_does_not_cover(tmp_path: Path) -> None:
    ctx = make_context(tmp_path, deny=["edit:.git/*"])
    with pytest.raises(Denied):
        await run(ctx, ".git/hooks/pre-commit", "", "#!/bin/sh\n")
    assert ctx.asked[0].patterns == (".git/hooks/pre-commit",)
    assert ctx.asked[0].always == ()
    assert not (ctx.workspace.root / ".git").exists()


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        ("a\0b", "is not a valid path"),
        ("missing.txt", "There is no file missing.txt"),
        (".", "directory"),
        ("x" * 300, "too long"),
    ],
)
async def test_bad_paths_are_named(tmp_path: Path, path: str, reason: str) -> None:
    ctx = make_context(tmp_path)
    with pytest.raises(ToolFailure, match=reason):
        await run(ctx, path, "a", "b")


async def test_an_error_about_stray_bytes_can_be_sent(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "a"
    file.write_bytes("grüße, größere\n".encode() + b"some words \xff here\n")
    with pytest.raises(ToolFailure) as caught:
        await run(ctx, file, "some words there", "x")
    assert "some words \ufffd here" in caught.value.advice
    result = await run(ctx, file, "some words", "any words")
    assert file.read_bytes().endswith(b"any words \xff here\n")
    assert msgspec.json.encode(result.metadata)


async def test_clients_are_told_of_the_edited_file(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "a").write_text("one\n")
    events = ctx.store.follow(ctx.store.read_last_seq())
    first = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    await run(ctx, "a", "one", "two")
    event = (await asyncio.wait_for(first, 30)).event
    await events.aclose()
    assert isinstance(event, FileEdited)
    assert event.properties.file == str(ctx.workspace.root / "a")


async def test_equal_texts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolFailure, match="equal"):
        await run(make_context(tmp_path), "a", "x", "x")


def test_the_parameters_have_the_wires_names() -> None:
    params = msgspec.convert(
        {"filePath": "a", "oldString": "b", "newString": "c", "replaceAll": True}, EditParams
    )
    assert params == EditParams("a", "b", "c", replace_all=True)


@pytest.mark.parametrize("old", ["KEY=nothing like it", "KEY=1", "KEY", ""])
async def test_of_a_file_that_may_not_be_read_nothing_is_told(tmp_path: Path, old: str) -> None:
    ctx = make_context(tmp_path)
    ctx.rules = (PermissionRule(permission="read", pattern="secrets/*", action="deny"),)
    for name in ("secrets/key.txt", ".env"):
        file = ctx.workspace.root / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("KEY=1f2e3d\nNEXT=2\n")
        with pytest.raises(ToolFailure, match="not free to read") as refused:
            await run(ctx, name, old, "new")
        assert "1f2e3d" not in format_for_model(refused.value)
        assert file.read_text() == "KEY=1f2e3d\nNEXT=2\n"


async def test_a_denied_edit_is_denied_before_anything_is_looked_at(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    ctx.rules = (PermissionRule(permission="edit", pattern="a.txt", action="deny"),)
    (ctx.workspace.root / "a.txt").write_text("one\n")
    with pytest.raises(Denied):
        await run(ctx, "a.txt", "nothing like it", "two")


async def test_a_new_file_of_secrets_is_made(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    ctx.rules = ()
    await run(ctx, ".env", "", "KEY=1\n")
    assert (ctx.workspace.root / ".env").read_text() == "KEY=1\n"


async def test_a_failure_quotes_nothing_of_a_file_that_is_asked_about_and_was_not_read(
    tmp_path: Path,
) -> None:
    ctx = make_context(tmp_path)
    ctx.rules = (PermissionRule(permission="read", pattern="notes/*", action="ask"),)
    (ctx.workspace.root / "notes").mkdir()
    (ctx.workspace.root / "notes/a.txt").write_text("KEY=1f2e3d\nNEXT=2\n")
    with pytest.raises(ToolFailure, match="not found, or more than once") as refused:
        await run(ctx, "notes/a.txt", "KEY=1f2exx", "new")
    assert "1f2e3d" not in format_for_model(refused.value)
