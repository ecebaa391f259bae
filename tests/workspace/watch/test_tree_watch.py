"""What is told of the files of a watched work tree."""

import asyncio
import errno
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codeloop.workspace.watch.ignored_files import IgnoredFiles
from codeloop.workspace.watch.inotify import InotifyWatch
from codeloop.workspace.watch.tree_watch import RootFolderMissing, TreeWatch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify exists on Linux only")


@pytest.fixture
async def tree(tmp_path: Path) -> AsyncIterator[TreeWatch]:
    root = tmp_path / "work"
    for name in ("src/deep", ".git/info", "node_modules/x", "build", "own"):
        (root / name).mkdir(parents=True)
    (root / ".gitignore").write_text("build/\n*.log\n!keep.log\n")
    (root / "src" / ".gitignore").write_text("made.*\n")
    (root / "src" / "a.py").write_text("a\n")
    (root / "b.txt").write_text("b\n")
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    made = TreeWatch(root, root / ".git", IgnoredFiles(root, root / ".git", ["own/", "*.tmp"], {}))
    await made.scan()
    yield made
    made.close()


async def told(tree: TreeWatch) -> set[tuple[str, str]]:
    async with asyncio.timeout(60):
        return {
            (str(event.path.relative_to(tree._root)), event.kind)
            for event in await tree.wait_for_changes()
        }


async def test_files_that_appear_change_and_go_are_told_each_once(tree: TreeWatch) -> None:
    root = tree._root
    (root / "src" / "new.py").write_text("1\n")
    (root / "src" / "new.py").write_text("2\n")
    (root / "src" / "a.py").write_text("a2\n")
    (root / "b.txt").unlink()
    (root / "short").write_text("x")
    (root / "short").unlink()
    assert await told(tree) == {("src/new.py", "add"), ("src/a.py", "change"), ("b.txt", "unlink")}


async def test_a_file_that_is_replaced_has_changed(tree: TreeWatch) -> None:
    (tree._root / "x").write_text("a3\n")
    (tree._root / "x").replace(tree._root / "src" / "a.py")
    assert await told(tree) == {("src/a.py", "change")}


async def test_what_is_ignored_is_not_told(tree: TreeWatch) -> None:
    for name in (
        "build/x",
        "node_modules/x/y",
        "own/x",
        "a.log",
        "a.tmp",
        "src/made.c",
        ".git/index",
    ):
        (tree._root / name).write_text("x")
    (tree._root / "keep.log").write_text("x")
    assert await told(tree) == {("keep.log", "add")}


async def test_new_folders_are_watched_with_what_is_in_them(tree: TreeWatch) -> None:
    (tree._root / "n" / "m").mkdir(parents=True)
    (tree._root / "n" / "m" / "a").write_text("x")
    assert await told(tree) == {("n/m/a", "add")}
    (tree._root / "n" / "m" / "a").write_text("y")
    assert await told(tree) == {("n/m/a", "change")}
    shutil.rmtree(tree._root / "n")
    assert await told(tree) == {("n/m/a", "unlink")}


async def test_a_folder_that_is_moved_takes_its_files_along(tree: TreeWatch) -> None:
    (tree._root / "src").rename(tree._root / "lib")
    files = await told(tree)
    assert {("src/a.py", "unlink"), ("lib/a.py", "add")} <= files
    (tree._root / "lib" / "a.py").write_text("2")
    assert await told(tree) == {("lib/a.py", "change")}


async def test_the_branch_is_told(tree: TreeWatch) -> None:
    (tree._root / ".git" / "HEAD.lock").write_text("ref: refs/heads/other\n")
    (tree._root / ".git" / "HEAD.lock").rename(tree._root / ".git" / "HEAD")
    assert await told(tree) == {(".git/HEAD", "change")}


def make_deep_folders(parent: Path, *, names: int) -> None:
    """Make folders in each other whose names have 200 characters,
    of which the innermost paths are too long to open.
    """
    folder = os.open(parent, os.O_RDONLY)
    for _ in range(names):
        os.mkdir("d" * 200, dir_fd=folder)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)


async def test_a_folder_whose_path_is_too_long_leaves_the_others_watched(tree: TreeWatch) -> None:
    make_deep_folders(tree._root, names=30)
    other = TreeWatch(tree._root, None, IgnoredFiles(tree._root, None, [], {}))
    await other.scan()
    (tree._root / "src" / "new.py").write_text("x")
    assert await told(other) == {("src/new.py", "add")}
    other.close()


async def test_a_new_folder_whose_path_is_too_long_leaves_the_others_watched(
    tree: TreeWatch,
) -> None:
    make_deep_folders(tree._root, names=30)
    (tree._root / "src" / "new.py").write_text("x")
    assert await told(tree) == {("src/new.py", "add")}
    # The last folders whose paths can be opened: an event names one that can't.
    innermost = max(tree._names, key=len)
    folder = os.open(tree._root / innermost, os.O_RDONLY)
    os.mkdir("e" * 200, dir_fd=folder)
    os.close(folder)
    (tree._root / "src" / "new.py").write_text("y")
    assert await told(tree) == {("src/new.py", "change")}


async def test_a_folder_whose_file_system_fails_leaves_the_others_watched(
    tree: TreeWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = InotifyWatch.add

    def add_unless_lost(watch: InotifyWatch, folder: str, path: str) -> None:
        if folder == "lost":
            raise OSError(errno.EIO, "Input/output error", path)
        add(watch, folder, path)

    monkeypatch.setattr(InotifyWatch, "add", add_unless_lost)
    (tree._root / "lost").mkdir()
    (tree._root / "found").mkdir()
    (tree._root / "found" / "a").write_text("x")
    assert await told(tree) == {("found/a", "add")}
    (tree._root / "found" / "a").write_text("y")
    assert await told(tree) == {("found/a", "change")}


async def test_a_root_that_is_deleted_ends_it(tree: TreeWatch) -> None:
    shutil.rmtree(tree._root)
    with pytest.raises(RootFolderMissing):
        await told(tree)
