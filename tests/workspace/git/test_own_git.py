"""What codeloop's own git does in a repository whose settings name programs: whatever it is,
none of them starts.

Each feature that changes or reads a repository meets each way to name a program,
in a trusted project, too.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from codeloop.schema.errors import CodeloopError
from codeloop.workspace.git.bundle import import_bundle, pack_work, unpack_files
from codeloop.workspace.git.merge import BranchMerger
from codeloop.workspace.git.repository import Git
from codeloop.workspace.git.submodules import check_out_submodules
from codeloop.workspace.git.working_diff import list_changes
from codeloop.workspace.git.worktrees import Worktrees
from tests.workspace.snapshot.trees_on_disk import git, repository, write

# Every attribute of a file that can name a driver, and by two names: `-c filter.a=b.clean=`
# sets another setting.
ATTRIBUTES = "*.txt filter=a=b merge=a=b diff=a=b\n*.dat filter=x merge=x diff=x\n"


class Trapped:
    """A repository with a linked work tree and a submodule.
    `sprung`: the file that a program makes when it starts.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sprung = folder / "sprung"
        module = repository(folder / "module", {"m.txt": "m\n", ".gitattributes": ATTRIBUTES})
        self.root = repository(
            folder / "work",
            {"a.txt": "1\n2\n3\n", "b.dat": "b\n", ".gitattributes": ATTRIBUTES, "c.txt": "c\n"},
        )
        git(self.root, "submodule", "--quiet", "add", str(module), "sub")
        git(self.root, "commit", "-q", "-m", "with a submodule")
        git(self.root, "worktree", "add", "-q", "-b", "codeloop/one", str(folder / "one"))
        self.tree = folder / "one"
        write(self.tree, {"a.txt": "1\n2\nthree\n", "new.dat": "n\n"})
        git(self.root, "checkout", "-q", "-b", "side")
        write(self.root, {"a.txt": "one\n2\n3\n"})
        git(self.root, "commit", "-q", "-a", "-m", "side")
        git(self.root, "checkout", "-q", "main")
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home")}
        (folder / "home").mkdir()
        self.trap = folder / "trap"
        self.trap.write_text(f"#!/bin/sh\ntouch {self.sprung}\ncat\n")
        self.trap.chmod(0o755)

    @property
    def settings(self) -> dict[str, str]:
        """Every setting that names a program for what the features do."""
        drivers = (
            "filter.{}.clean",
            "filter.{}.smudge",
            "filter.{}.process",
            "merge.{}.driver",
            "diff.{}.textconv",
        )
        named = {
            name.format(each): str(self.trap)
            for each in ("x", "a=b")
            for name in (*drivers, "diff.{}.command")
        }
        plain = (
            "core.fsmonitor",
            "diff.external",
            "gpg.program",
            "core.sshCommand",
            "core.editor",
            "core.pager",
        )
        required = {f"filter.{each}.required": "true" for each in ("x", "a=b")}
        return named | required | dict.fromkeys(plain, str(self.trap)) | {"commit.gpgSign": "true"}

    def write_settings(self, file: Path, names: Callable[[str], bool] = lambda _: True) -> None:
        for name, value in self.settings.items():
            if names(name):
                git(self.folder, "config", "--file", str(file), name, value)


def by_config(it: Trapped) -> None:
    it.write_settings(it.root / ".git/config")


def without_process(it: Trapped) -> None:
    it.write_settings(it.root / ".git/config", lambda name: not name.endswith(".process"))


def by_info_attributes(it: Trapped) -> None:
    (it.root / ".git/info/attributes").write_text("* filter=x merge=x diff=x\n")
    by_config(it)


def by_include(it: Trapped) -> None:
    it.write_settings(it.folder / "included")
    git(it.root, "config", "include.path", str(it.folder / "included"))


def by_branch(it: Trapped) -> None:
    it.write_settings(it.folder / "included")
    git(it.root, "config", "includeIf.onbranch:**.path", str(it.folder / "included"))


def by_folder(it: Trapped) -> None:
    it.write_settings(it.folder / "included")
    for pattern in ("**", "**/worktrees/**"):
        git(it.root, "config", f"includeIf.gitdir:{pattern}.path", str(it.folder / "included"))


def by_work_tree_config(it: Trapped) -> None:
    git(it.root, "config", "extensions.worktreeConfig", "true")
    for file in (it.root / ".git/config.worktree", it.root / ".git/worktrees/one/config.worktree"):
        it.write_settings(file)


def by_submodule(it: Trapped) -> None:
    it.write_settings(it.root / ".git/modules/sub/config")
    (it.root / ".git/modules/sub/info/attributes").write_text("* filter=x merge=x diff=x\n")


def by_common_folder(it: Trapped) -> None:
    """The first steps of an attack by a command: another folder with the same objects,
    and a pointer to it.
    """
    evil = it.root / "evil"
    for name in ("objects", "refs", "info"):
        shutil.copytree(it.root / ".git" / name, evil / name)
    (evil / "info/attributes").write_text("* filter=a=b\n")
    shutil.copy(it.root / ".git/config", evil / "config")
    it.write_settings(evil / "config")
    (it.root / ".git/commondir").write_text("../evil\n")


def by_hooks(it: Trapped) -> None:
    git(it.root, "config", "core.hooksPath", str(it.folder / "hooks"))
    for folder in (it.folder / "hooks", it.root / ".git/hooks"):
        folder.mkdir(exist_ok=True)
        for name in (
            "post-checkout",
            "reference-transaction",
            "pre-commit",
            "post-index-change",
            "post-rewrite",
        ):
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(it.trap)


PLANTS = (
    *(
        by_config,
        without_process,
        by_info_attributes,
        by_include,
        by_branch,
        by_folder,
        by_work_tree_config,
    ),
    *(by_submodule, by_common_folder, by_hooks),
)


async def create(it: Trapped, trees: Worktrees) -> None:
    await trees.add(it.folder / "two", "codeloop/two")
    await check_out_submodules(Git(it.folder / "two", it.environment))
    assert (it.folder / "two/a.txt").read_text() == "1\n2\n3\n"
    assert (it.folder / "two/sub/m.txt").read_text() == "m\n"
    assert (
        git(it.folder / "two", "-c", "core.fsmonitor=false", "rev-parse", "--abbrev-ref", "HEAD")
        == "codeloop/two\n"
    )


async def create_sparse(it: Trapped, trees: Worktrees) -> None:
    await trees.add(it.folder / "two", "codeloop/two", sparse=["sub"])
    assert (it.folder / "two/a.txt").exists()


async def remove(it: Trapped, trees: Worktrees) -> None:
    for each in ("a.txt", "new.dat"):
        (it.tree / each).unlink()
    with suppress(CodeloopError):
        await trees.remove(it.tree)
    await trees.remove(it.tree, force=True)
    assert not it.tree.exists()


async def reset(it: Trapped, trees: Worktrees) -> None:
    (it.tree / "a.txt").write_text("1\n2\n3\n")
    (it.tree / "new.dat").unlink()
    await trees.reset(it.tree)


async def merge(it: Trapped, trees: Worktrees) -> None:
    merger, tree = BranchMerger(trees), Git(it.tree, it.environment)
    with suppress(CodeloopError):
        await merger.commit_all(tree, "work")
    await merger.commit_all(tree, "work", is_rescue=True)
    merged = await merger.merge("codeloop/one", "main", "merge")
    assert merged.commit is not None
    assert (it.root / "a.txt").read_text() == "1\n2\nthree\n"


async def merge_both_sides(it: Trapped, trees: Worktrees) -> None:
    merger = BranchMerger(trees)
    await merger.commit_all(Git(it.tree, it.environment), "work", is_rescue=True)
    await merger.merge("side", "codeloop/one", "merge", ["a.txt"])
    await merger.merge("side", "codeloop/one", "merge")


async def rebase(it: Trapped, trees: Worktrees) -> None:
    merger, tree = BranchMerger(trees), Git(it.tree, it.environment)
    await merger.commit_all(tree, "work", is_rescue=True)
    await merger.rebase(tree, "side")
    await merger.rebase(tree, "main")


async def move(it: Trapped, trees: Worktrees) -> None:
    work = await pack_work(Git(it.tree, it.environment), it.folder / "bundle")
    await import_bundle(trees.git, it.folder / "bundle", work)
    await trees.add(it.folder / "two", "codeloop/two", work.head)
    await unpack_files(Git(it.folder / "two", it.environment), work)
    assert (it.folder / "two/new.dat").read_text() == "n\n"


async def compare(it: Trapped, trees: Worktrees) -> None:
    write(it.root, {"a.txt": "other\n", "u.txt": "u\n"})
    for root in (it.root, it.tree):
        each = Git(root, it.environment)
        await list_changes(each, await each.resolve_commit("HEAD"), 3)
        await trees.list_changed_files(each)


async def apply_a_patch(it: Trapped, trees: Worktrees) -> None:
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n-1\n+eins\n 2\n 3\n"
    (it.folder / "patch").write_text(patch)
    assert (await trees.git.run("apply", "--whitespace=nowarn", str(it.folder / "patch"))).code == 0
    assert (it.root / "a.txt").read_text() == "eins\n2\n3\n"


async def find_branches(it: Trapped, trees: Worktrees) -> None:
    default = await trees.git.find_default_branch()
    assert default is not None
    assert default.name == "main"
    assert await Git(it.tree, it.environment).read_branch() == "codeloop/one"


FEATURES = (
    *(
        create,
        create_sparse,
        remove,
        reset,
        merge,
        merge_both_sides,
        rebase,
        move,
        compare,
        apply_a_patch,
    ),
    find_branches,
)
Feature = Callable[[Trapped, Worktrees], Awaitable[None]]


@pytest.fixture
def trapped(tmp_path: Path) -> Trapped:
    return Trapped(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("is_trusted", [False, True], ids=["untrusted", "trusted"])
@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("feature", FEATURES)
async def test_no_setting_of_a_repository_starts_a_program(
    trapped: Trapped, feature: Feature, plant: Callable[[Trapped], None], *, is_trusted: bool
) -> None:
    plant(trapped)
    trees = Worktrees(Git(trapped.root, trapped.environment), is_trusted=is_trusted)
    await feature(trapped, trees)
    assert not trapped.sprung.exists()


@contextmanager
def swapping(it: Trapped) -> Generator[None]:
    """Exchange the repository's settings all the time, by a rename: with drivers, and without."""
    config = it.root / ".git/config"
    clean, armed = it.folder / "clean", it.folder / "armed"
    shutil.copy(config, clean)
    shutil.copy(config, armed)
    it.write_settings(armed)
    ended = Event()

    def swap() -> None:
        while not ended.is_set():
            for each in (armed, clean):
                shutil.copy(each, it.folder / "next")
                (it.folder / "next").rename(config)

    thread = Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("feature", [create, merge, rebase, move, reset])
async def test_settings_that_change_all_the_time_start_nothing(
    trapped: Trapped, feature: Feature
) -> None:
    with swapping(trapped):
        await feature(trapped, Worktrees(Git(trapped.root, trapped.environment)))
    assert not trapped.sprung.exists()


@pytest.mark.slow
@pytest.mark.parametrize("is_trusted", [False, True], ids=["untrusted", "trusted"])
async def test_filters_of_the_users_own_settings_run_where_trusted(
    trapped: Trapped, *, is_trusted: bool
) -> None:
    condition = f'[includeIf "gitdir:{trapped.folder}/"]\n\tpath = filters\n'
    (trapped.folder / "home/.gitconfig").write_text(condition)
    trapped.write_settings(
        trapped.folder / "home/filters", lambda name: name in {"filter.x.smudge", "filter.x.clean"}
    )
    trees = Worktrees(Git(trapped.root, trapped.environment), is_trusted=is_trusted)
    await trees.add(trapped.folder / "two", "codeloop/two")
    assert (trapped.folder / "two/b.dat").read_text() == "b\n"
    assert trapped.sprung.exists() is is_trusted


@pytest.mark.slow
def test_the_traps_are_armed(trapped: Trapped) -> None:
    without_process(trapped)
    (trapped.root / "b.dat").write_text("changed\n")
    git(trapped.root, "-c", "core.fsmonitor=false", "add", "b.dat")
    assert trapped.sprung.exists()


@pytest.mark.slow
async def test_two_calls_at_once_have_folders_of_their_own(trapped: Trapped) -> None:
    tree = Git(trapped.tree, trapped.environment)
    commits = await asyncio.gather(*(tree.resolve_commit("HEAD") for _ in range(8)))
    assert len(set(commits)) == 1


@pytest.mark.slow
async def test_work_trees_of_a_repository_with_reftables(tmp_path: Path) -> None:
    root = tmp_path / "work"
    try:
        git(tmp_path, "init", "-q", "-b", "main", "--ref-format=reftable", str(root))
    except subprocess.CalledProcessError:
        pytest.skip("this git has no reftables")
    repository(root, {"a.txt": "a\n"})
    trees = Worktrees(Git(root, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}))
    await trees.add(tmp_path / "one", "codeloop/one")
    tree, merger = await trees.open_tree(tmp_path / "one"), BranchMerger(trees)
    write(tree.root, {"b.txt": "b\n"})
    assert await merger.commit_all(tree, "more") == ["b.txt"]
    assert (await merger.merge("codeloop/one", "main", "merge")).commit is not None
    assert git(root, "status", "--porcelain") == ""
    assert (root / "b.txt").read_text() == "b\n"
    await trees.remove(tree.root)
    assert git(root, "branch", "--format=%(refname)").split() == ["refs/heads/main"]
