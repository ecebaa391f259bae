"""The apply_patch tool: everything checked, asked once, all files or none."""

from pathlib import Path

import pytest

from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.permission import PermissionRule
from codeloop.tool.builtin.files.apply_patch import PatchParams, apply_patch
from codeloop.tool.builtin.files.read import ReadParams, read
from codeloop.tool.tool import ToolFailure, ToolResult, format_for_model
from tests.tool.context import TestContext, make_context


def envelope(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


async def run(ctx: TestContext, *lines: str) -> ToolResult:
    return await apply_patch.run(PatchParams(envelope(*lines)), ctx)


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


async def test_files_are_added_changed_moved_and_deleted(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    root = ctx.workspace.root
    (root / "change").write_bytes(b"a\r\nb\r\n")
    (root / "move").write_text("x\ny\n")
    (root / "move").chmod(0o755)
    (root / "delete").write_text("gone\n")
    result = await run(
        ctx, "*** Add File: sub/new", "+one", "*** Update File: change", "@@", " a", "-b", "+c",
        "*** Update File: move", "*** Move to: sub/moved", "@@", "-x", "+z", "*** Delete File: delete",
    )  # fmt: skip
    assert tree(root) == {"change": b"a\r\nc\r\n", "sub/moved": b"z\ny\n", "sub/new": b"one\n"}
    assert (root / "sub/moved").stat().st_mode & 0o777 == 0o755
    assert result.output.splitlines() == [
        "A sub/new: 1 line", "M change: line 2", "R move -> sub/moved: line 1", "D delete",
    ]  # fmt: skip
    assert [file["type"] for file in result.metadata["files"]] == [
        "added",
        "modified",
        "deleted",
        "added",
        "deleted",
    ]
    (need,) = ctx.asked
    assert need.patterns == ("sub/new", "change", "move", "sub/moved", "delete")
    assert need.metadata["diff"].count("Index: ") == 5


FAILING = {
    "a file that is not there": ("*** Update File: nowhere", "@@", "-a", "+b"),
    "lines that are not there": ("*** Update File: b", "@@", "-nope", "+x"),
    "a file that exists": ("*** Add File: b", "+x"),
    "a deletion of nothing": ("*** Delete File: nowhere",),
    "a move onto a file": ("*** Update File: b", "*** Move to: c", "@@", "-b", "+x"),
    "a directory": ("*** Delete File: folder",),
    "a change of nothing": ("*** Update File: b", "@@", "-b", "+b"),
    "binary": ("*** Update File: bin", "@@", "-a", "+b"),
}


@pytest.mark.parametrize("name", FAILING)
async def test_nothing_is_applied_when_one_operation_fails(tmp_path: Path, name: str) -> None:
    ctx = make_context(tmp_path)
    root = ctx.workspace.root
    (root / "folder").mkdir()
    (root / "bin").write_bytes(b"a\0")
    for file in ("a", "b", "c"):
        (root / file).write_text(f"{file}\n")
    before = tree(root)
    with pytest.raises(ToolFailure):
        await run(
            ctx,
            "*** Update File: a",
            "@@",
            "-a",
            "+changed",
            "*** Add File: new/file",
            "+x",
            *FAILING[name],
        )
    assert tree(root) == before
    assert not (root / "new").exists()
    assert ctx.asked == []


OUTSIDE = {
    "dots": ("*** Add File: ../evil", "+x"),
    "absolute": ("*** Add File: {outside}/evil", "+x"),
    "a move out": ("*** Update File: b", "*** Move to: ../evil", "@@", "-b", "+x"),
    "through a link": ("*** Add File: link/evil", "+x"),
    "a deletion": ("*** Delete File: {outside}/theirs",),
}


@pytest.mark.parametrize("name", OUTSIDE)
async def test_a_patch_that_leads_out_is_refused_as_a_whole(tmp_path: Path, name: str) -> None:
    ctx = make_context(tmp_path, deny=["external_directory"])
    root, outside = ctx.workspace.root, tmp_path / "outside"
    outside.mkdir()
    (outside / "theirs").write_text("x")
    (root / "link").symlink_to(outside)
    (root / "b").write_text("b\n")
    with pytest.raises(Denied):
        await run(
            ctx,
            "*** Add File: fine",
            "+x",
            *(line.format(outside=outside) for line in OUTSIDE[name]),
        )
    assert tree(root) == {"b": b"b\n"}
    assert tree(outside) == {"theirs": b"x"}
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    ("deny", "target"), [("edit:denied/*", "denied/x"), ("edit:.git/*", ".git/hooks/x")]
)
async def test_a_move_to_a_denied_place_refuses_the_whole_patch(
    tmp_path: Path, deny: str, target: str
) -> None:
    ctx = make_context(tmp_path, deny=[deny])
    root = ctx.workspace.root
    (root / "b").write_text("b\n")
    with pytest.raises(Denied):
        await run(
            ctx,
            "*** Add File: fine",
            "+x",
            "*** Update File: b",
            f"*** Move to: {target}",
            "@@",
            "-b",
            "+x",
        )
    assert tree(root) == {"b": b"b\n"}


async def test_of_a_file_that_changed_since_it_was_read_only_what_stands_there_exactly_is_changed(
    tmp_path: Path,
) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "a"
    file.write_text("a\n")
    await read.run(ReadParams("a"), ctx)
    file.write_text("a\n  theirs\n")
    for refused in (["*** Update File: a", "@@", "-theirs", "+b"], ["*** Delete File: a"]):
        with pytest.raises(ToolFailure, match="changed since"):
            await run(ctx, *refused)
    result = await run(ctx, "*** Update File: a", "@@", "-a", "+b")
    assert result.output.startswith("M a: line 1\n(a had changed since you read it.")
    assert file.read_text() == "b\n  theirs\n"


async def test_later_operations_see_earlier_ones(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "a").write_text("one\ntwo\n")
    await run(
        ctx, "*** Update File: a", "@@", "-one", "+1", "*** Update File: a", "@@", "-two", "+2",
        "*** Add File: n", "+x", "*** Update File: n", "@@", "-x", "+y",
    )  # fmt: skip
    assert tree(ctx.workspace.root) == {"a": b"1\n2\n", "n": b"y\n"}


async def test_a_unified_diff_is_applied(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "a").write_text("one\ntwo\n")
    patch = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
    await apply_patch.run(PatchParams(patch), ctx)
    assert tree(ctx.workspace.root) == {"a": b"one\nthree\n"}


async def test_a_patch_that_can_not_be_read_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(ToolFailure, match="line 2"):
        await run(make_context(tmp_path), "*** Copy File: a")


async def test_of_a_file_that_may_not_be_read_nothing_is_told(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    ctx.rules = ()
    (ctx.workspace.root / ".env").write_text("KEY=1f2e3d\n")
    for hunk in ("-KEY=nothing like it\n+x", "-KEY=1f2e3d\n+x"):
        patch = f"*** Begin Patch\n*** Update File: .env\n*** Move to: open.txt\n@@\n{hunk}\n*** End Patch"
        with pytest.raises(ToolFailure, match="not free to read") as refused:
            await apply_patch.run(PatchParams(patch), ctx)
        assert "1f2e3d" not in format_for_model(refused.value).replace(hunk, "")
    assert (ctx.workspace.root / ".env").read_text() == "KEY=1f2e3d\n"


@pytest.mark.parametrize(
    "path", ["secrets/x", "src/../secrets/x", ".git/hooks/x", ".GIT/hooks/x", "codeloop.json"]
)
async def test_a_patch_into_a_denied_or_protected_place_is_refused_as_a_whole(
    tmp_path: Path, path: str
) -> None:
    ctx = make_context(tmp_path)
    ctx.rules = (PermissionRule(permission="edit", pattern="secrets/*", action="deny"),)
    patch = f"*** Begin Patch\n*** Add File: a.txt\n+x\n*** Add File: {path}\n+x\n*** End Patch"
    with pytest.raises((Denied, Rejected)):
        await apply_patch.run(PatchParams(patch), ctx)
    assert list(ctx.workspace.root.iterdir()) == []
