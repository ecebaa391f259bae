"""What is staged, changed and new, as `git status` has it,
from the files of the repository alone.
"""

import hashlib
import os
import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from codeloop.workspace.git.head import read_head_commit
from codeloop.workspace.git.objects import GitObjects
from codeloop.workspace.git.tree_state import TreeState, read_tree_state

GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [*GIT, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


def write(folder: Path, *names: str, text: str = "x\n") -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    git(folder, "init", "-q")
    write(folder, "a.py", "b.py", "src/c.py", "src/deep/d.py", "docs/guide/e.md", "only/f.py")
    write(folder, ".gitignore", text="*.pyc\n/build/\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    return folder


def told_by_git(folder: Path) -> TreeState:
    """Return what `git status` says; a folder whose files are all staged, or all gone,
    is given as a folder.
    """
    rows = [
        line
        for line in git(folder, "status", "--porcelain", "-z", "--no-renames").split("\0")
        if line
    ]
    found: dict[str, list[str]] = {"staged": [], "unstaged": [], "untracked": []}
    for row in rows:
        if row.startswith("??"):
            found["untracked"].append(row[3:])
            continue
        found["staged"] += [row[3:]] if row[0] != " " else []
        found["unstaged"] += [row[3:]] if row[1] != " " else []
    return TreeState(*(sorted(paths) for paths in found.values()))


def state(folder: Path) -> TreeState | None:
    return read_tree_state(folder, {"HOME": str(folder.parent / "home")})


def stage(*names: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        write(folder, *names, text="other\n")
        git(folder, "add", *names)

    return change


def both(folder: Path) -> None:
    stage("a.py")(folder)
    write(folder, "a.py", text="again\n")


def ignored(folder: Path) -> None:
    write(
        folder,
        "src/x.pyc",
        "build/out",
        "cache/y.pyc",
        "venv/lib/z.py",
        "docs/kept.pyc",
        "src/new.py",
        "n/e/w.py",
    )
    write(folder, "venv/.gitignore", text="*\n")
    write(folder, "docs/.gitignore", text="!kept.pyc\n")


def with_own_rules(folder: Path) -> None:
    write(folder, "x.log", "y.tmp", "z.txt")
    write(folder, ".git/info/exclude", text="*.log\n")
    write(folder.parent, "home/.config/git/ignore", text="*.tmp\n")


def repository_inside(folder: Path) -> None:
    (folder / "inner").mkdir()
    git(folder / "inner", "init", "-q")
    write(folder, "inner/x.py")


def committed_link(folder: Path) -> None:
    (folder / "link").symlink_to(".//src")
    git(folder, "add", "link")
    git(folder, "commit", "-qm", "link")
    os.utime(folder / "link", (1, 1), follow_symlinks=False)


CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda folder: None,
    "an edit": lambda folder: write(folder, "src/c.py", text="longer\n"),
    "an edit of the same size": lambda folder: write(folder, "src/c.py", text="y\n"),
    "a file that was only touched": lambda folder: os.utime(folder / "a.py", (1, 1)),
    "a deletion": lambda folder: (folder / "only/f.py").unlink(),
    "a program": lambda folder: (folder / "a.py").chmod(0o755),
    "a staged edit": stage("src/deep/d.py"),
    "a staged file that is new": stage("src/new.py"),
    "a staged edit and another": both,
    "a staged deletion": lambda folder: git(folder, "rm", "-q", "a.py"),
    "staged and taken back": lambda folder: (stage("a.py")(folder), git(folder, "reset", "-q")),
    "new files, ignored and not": ignored,
    "rules of one's own": with_own_rules,
    "a folder that is empty": lambda folder: (folder / "hollow").mkdir(),
    "a repository inside": repository_inside,
    "a link": lambda folder: (folder / "link").symlink_to("src"),
    "a committed link that was touched": committed_link,
    "a new folder": lambda folder: write(folder, "src/more/x.py", "src/more/y.py"),
}


@pytest.mark.parametrize("kind", ["loose", "packed", "detached"])
@pytest.mark.parametrize("name", CHANGES)
def test_it_is_what_git_says(
    tree: Path, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tree.parent / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    if kind == "packed":
        git(tree, "gc", "-q")
    if kind == "detached":
        git(tree, "checkout", "-q", "--detach")
    CHANGES[name](tree)
    found = state(tree)
    assert found == told_by_git(tree)


def test_a_folder_that_is_staged_or_removed_as_a_whole_is_one_name(tree: Path) -> None:
    stage("fresh/x.py", "fresh/y.py")(tree)
    git(tree, "rm", "-qr", "docs")
    assert state(tree) == TreeState(["docs/", "fresh/"], [], [])


def test_before_the_first_commit_all_of_the_index_is_staged(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    stage("a.py", "src/b.py")(tmp_path)
    assert state(tmp_path) == TreeState(["a.py", "src/b.py"], [], [])


@pytest.mark.slow
def test_trees_that_are_stored_as_changes_are_read(tree: Path) -> None:
    for number in range(30):
        write(tree, *(f"many/{n:03}.txt" for n in range(60)), text=f"{number}\n")
        write(tree, f"many/{number}.txt", text=f"{number}\n")
        git(tree, "add", "-A")
        git(tree, "commit", "-qm", str(number))
    git(tree, "gc", "-q", "--aggressive")
    packs = git(tree, "verify-pack", "-v", *map(str, (tree / ".git/objects/pack").glob("*.idx")))
    changed = [
        line.split() for line in packs.splitlines() if " tree " in line and len(line.split()) == 7
    ]
    assert changed, "no tree is a change of another: this test would show nothing"
    objects = GitObjects(tree / ".git")
    for name, *_ in changed:
        rows = objects.read_tree(bytes.fromhex(name))
        listed = [line.split() for line in git(tree, "ls-tree", name).splitlines()]
        assert rows == {each[3]: (int(each[0], 8), bytes.fromhex(each[2])) for each in listed}
    write(tree, "many/3.txt", text="other\n")
    git(tree, "add", "-A")
    assert state(tree) == TreeState(["many/3.txt"], [], [])


def test_another_work_tree_has_its_own_state(tree: Path) -> None:
    other = tree.parent / "other"
    git(tree, "worktree", "add", "-q", str(other))
    stage("a.py")(other)
    assert state(other) == TreeState(["a.py"], [], [])
    assert state(tree) == TreeState([], [], [])


def test_too_many_new_files_are_not_known(tree: Path) -> None:
    write(tree, *(f"{n}.txt" for n in range(300)))
    assert state(tree) == TreeState([], [], None)


@pytest.mark.parametrize("broken", ["commit", "pack", "index"])
def test_what_is_broken_is_not_known(tree: Path, broken: str) -> None:
    stage("a.py")(tree)
    if broken == "index":
        write(tree, ".git/index", text="DIRC" + "x" * 100)
        assert state(tree) is None
        return
    if broken == "pack":
        git(tree, "gc", "-q")
        for path in (tree / ".git/objects/pack").glob("*.pack"):
            data = path.read_bytes()
            path.chmod(0o600)
            path.write_bytes(data[:12] + b"\xff" * (len(data) - 12))
    else:
        shutil.rmtree(tree / ".git/objects")
    assert state(tree) == TreeState(None, [], [])


def test_a_branch_without_a_commit_and_one_in_a_file_of_all_references(tree: Path) -> None:
    commit = bytes.fromhex(git(tree, "rev-parse", "HEAD").strip())
    folder = tree / ".git"
    assert read_head_commit(folder, folder) == commit
    git(tree, "pack-refs", "--all")
    assert read_head_commit(folder, folder) == commit
    git(tree, "checkout", "-q", "--orphan", "empty")
    assert read_head_commit(folder, folder) == b""


def test_a_tree_whose_mode_is_no_number_is_not_read(tmp_path: Path) -> None:
    content = b"9 x\0" + b"a" * 20
    raw = b"tree %d\0%b" % (len(content), content)
    name = hashlib.sha1(raw, usedforsecurity=False).hexdigest()
    loose = tmp_path / "objects" / name[:2] / name[2:]
    loose.parent.mkdir(parents=True)
    loose.write_bytes(zlib.compress(raw))
    assert GitObjects(tmp_path).read_tree(bytes.fromhex(name)) is None


def test_an_object_that_is_a_change_of_itself_is_not_read(tmp_path: Path) -> None:
    name = b"\xff" * 20
    packs = tmp_path / "objects/pack"
    packs.mkdir(parents=True)
    # Kind 7: a delta, which names its base.
    (packs / "a.pack").write_bytes(b"PACK" + bytes([0x73]) + name + zlib.compress(b"abc"))
    index = (
        b"\xfftOc\0\0\0\2"
        + bytes(4 * 255)
        + (1).to_bytes(4, "big")
        + name
        + bytes(4)
        + (4).to_bytes(4, "big")
    )
    (packs / "a.idx").write_bytes(index)
    assert GitObjects(tmp_path).read_tree(name) is None
