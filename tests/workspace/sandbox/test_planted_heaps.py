"""What a sandboxed command hides from a look at git's files: behind heaps, in two steps,
in what git goes on with.
"""

import asyncio
import itertools
import subprocess
from pathlib import Path

import pytest

from codeloop.schema.bounds.sandbox import GIT_SEARCH_NEW_FOLDERS, GIT_SEARCH_TIME
from codeloop.schema.config import SandboxConfig
from codeloop.schema.wire import replace
from codeloop.workspace.git.planted import repository_finder
from tests.workspace.sandbox.conftest import Attacked
from tests.workspace.sandbox.test_planted import BEFORE, IDENTITY, evil, git, use_git

__all__ = ["evil"]

TICK = 0.05
"""Seconds between what a user and a command do: the clock of files may tick that rarely."""
REBASE = f"""
for i in 1 2 3; do echo $i > f$i; git add f$i; git {IDENTITY} commit -qm c$i; done
GIT_SEQUENCE_EDITOR="sed -i '1s/^pick/edit/'" git {IDENTITY} rebase -q -i HEAD~2
git {IDENTITY} commit -q --amend -m c2
"""


@pytest.fixture
def victim(it: Attacked) -> Path:
    """A file of the user's own."""
    made = it.home / "victim"
    made.write_text("kept")
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    "attack",
    [
        "seq -f x%.0f 6000 | (cd .git; xargs touch); rm -rf .git/logs; mkdir .git/logs; ln -s {victim} .git/logs/HEAD",
        "cd .git; mkdir -p info/h; seq -f info/h/%.0f 5500 | xargs mkdir; rm logs/HEAD; ln -s {victim} logs/HEAD",
        "cd .git/logs; mkdir z; seq -f z/%.0f 5500 | xargs mkdir; ln -sf {victim} refs/heads/master",
    ],
)
async def test_a_heap_of_files_or_folders_hides_no_link(
    it: Attacked, evil: Path, victim: Path, attack: str
) -> None:
    outcome = await it.run(attack.format(victim=victim))
    use_git(it)
    assert victim.read_text() == "kept"
    assert it.backend != "landlock" or any("Set aside" in warning for warning in outcome.warnings)


@pytest.mark.slow
async def test_a_link_in_a_rebase_that_waits_takes_no_words_out(
    it: Attacked, evil: Path, victim: Path
) -> None:
    todo = ".git/rebase-merge/git-rebase-todo"
    await it.run(f"{REBASE} sed -i 's/ c3/ ; evil/' {todo}; ln -sf {victim} .git/rebase-merge/done")
    git(it, it.root, "rebase", "--continue")
    assert victim.read_text() == "kept"


@pytest.mark.slow
async def test_a_link_in_a_repository_that_an_earlier_command_made_is_found(
    it: Attacked, evil: Path, victim: Path
) -> None:
    await it.run(f"git init -q sub; cd sub; git {IDENTITY} commit -q --allow-empty -m a")
    await it.run(
        f"cd sub; rm -f .git/logs/refs/heads/*; ln -s {victim} .git/logs/refs/heads/master"
    )
    git(it, it.root / "sub", "commit", "--allow-empty", "-m", "b")
    assert victim.read_text() == "kept"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["worktrees/x", "modules/x"])
async def test_a_link_among_work_trees_or_submodules_has_nothing_removed(
    it: Attacked, evil: Path, victim: Path, name: str
) -> None:
    (it.home / "work").mkdir()
    victim.rename(it.home / "work/victim")
    await it.run(f"mkdir -p .git/{name}; rmdir .git/{name}; ln -s {it.home}/work .git/{name}")
    git(it, it.root, "worktree", "prune")
    assert not (it.root / ".git" / name).is_symlink()
    assert (it.home / "work/victim").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "attack",
    [
        "echo x/evil > .git/rebase-merge/strategy",
        "printf '#%0100000d\\n' $(seq 50) >> $TODO; echo exec {evil} >> $TODO",
    ],
)
async def test_what_goes_on_with_a_rebase_runs_no_program(
    it: Attacked, evil: Path, attack: str
) -> None:
    await it.run(
        f"mkdir git-merge-x; cp {evil} git-merge-x/evil; TODO=.git/rebase-merge/git-rebase-todo"
        f" {REBASE} {attack.format(evil=evil)}"
    )
    git(it, it.root, "rebase", "--continue")
    assert not (it.home / "planted").exists()


async def test_what_goes_on_with_cherry_picks_runs_no_program(it: Attacked, evil: Path) -> None:
    await it.run(f"""
        mkdir git-merge-x; cp {evil} git-merge-x/evil
        for i in 1 2 3; do echo $i > f; git add f; git {IDENTITY} commit -qm c$i; done
        git checkout -q -b other HEAD~3; echo z > f; git add f; git {IDENTITY} commit -qm z
        git {IDENTITY} cherry-pick master~1 master; git checkout --theirs f; git add f
        printf '[options]\\n\\tStrategy = x/evil\\n' > .git/sequencer/opts
    """)
    assert (it.root / ".git/sequencer").exists()
    git(it, it.root, "cherry-pick", "--continue")
    assert not (it.home / "planted").exists()


@pytest.mark.slow
async def test_what_is_made_behind_a_heap_of_folders_is_found_and_what_was_there_is_left_alone(
    it: Attacked, evil: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So many events are lost, and all folders searched anew.
    monkeypatch.setattr(
        repository_finder, "GIT_SEARCH_TIME", replace(GIT_SEARCH_TIME, value=120_000)
    )
    seen = it.root / "seen/deep"
    seen.mkdir(parents=True)
    git(it, seen, "init", "-q")
    (seen / ".git/hooks/pre-commit").write_text("mine")
    for number in range(4_100):
        (it.root / f"a{number}").mkdir()
    outcome = await it.run(
        f"cd {it.root}; EVIL={evil}\n{BEFORE}\nseq -f b%.0f 17000 | xargs mkdir; mkdir -p zz/deep; cd zz/deep; nested;"
        " evil sub/.git/config"
    )
    git(it, it.root / "zz/deep/sub", "status")
    assert not (it.home / "planted").exists()
    assert any("zz/deep/sub/.git/config" in warning for warning in outcome.warnings)
    assert (seen / ".git/hooks/pre-commit").read_text() == "mine"


def test_a_busy_machine_ends_no_search_for_repositories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        (tmp_path / f"{number}/deep/.git").mkdir(parents=True)
    hours = itertools.count(step=3600)
    finder = repository_finder.RepositoryFinder([tmp_path])
    with monkeypatch.context() as patched:
        patched.setattr("time.monotonic", lambda: float(next(hours)))
        found = finder.find()
    finder.close()
    assert len(found) == 20


async def test_it_says_so_when_more_folders_come_than_are_looked_through(
    it: Attacked, evil: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        repository_finder, "GIT_SEARCH_NEW_FOLDERS", replace(GIT_SEARCH_NEW_FOLDERS, value=1)
    )
    outcome = await it.run("seq -f b%.0f 2000 | xargs mkdir; mkdir zz")
    assert any("look for `.git` in" in warning for warning in outcome.warnings), outcome


@pytest.mark.slow
@pytest.mark.parametrize("watches", [1_000, 20])
async def test_what_is_made_in_an_old_deep_folder_of_a_large_project_is_found(
    it: Attacked, evil: Path, monkeypatch: pytest.MonkeyPatch, watches: int
) -> None:
    monkeypatch.setattr(
        repository_finder, "GIT_SEARCH_NEW_FOLDERS", replace(GIT_SEARCH_NEW_FOLDERS, value=30)
    )
    monkeypatch.setattr(repository_finder, "count_available_watches", lambda: watches)
    mine = it.root / "a99/mine"
    for folder in (
        mine,
        it.root / "zz/old/deep",
        *(it.root / f"a{number}" for number in range(99)),
    ):
        folder.mkdir(parents=True)
    git(it, mine, "init", "-q")
    (mine / ".git/hooks/pre-commit").write_text("mine")
    await asyncio.sleep(TICK)
    plant = f"EVIL={evil}\n{BEFORE}\ncd {it.root}/zz/old/deep; git init -q; evil .git/config"
    first = await it.run(plant)
    later = [warning for _ in range(3) for warning in (await it.run("true")).warnings]
    assert any("look for `.git` in" in warning for warning in first.warnings), first
    assert any("zz/old/deep/.git/config" in warning for warning in later), later
    third = await it.run("rm -rf zz/old/deep/.git")
    last = await it.run(plant)
    git(it, it.root / "zz/old/deep", "status")
    assert not (it.home / "planted").exists()
    assert (third.warnings, len(last.warnings)) == ((), 1)
    assert (mine / ".git/hooks/pre-commit").read_text() == "mine"


ELSEWHERE = {
    "a pointer to the project's own": (
        "mkdir -p sub/.h; cp evil.sh sub/.h/$HOOK; echo gitdir: ../.git > sub/.git",
        "sub",
    ),
    "a link to it": ("mkdir -p sub/.h; cp evil.sh sub/.h/$HOOK; ln -s ../.git sub/.git", "sub"),
    "a pointer to another of the user's": (
        "mkdir -p sub/.h; cp evil.sh sub/.h/$HOOK; echo gitdir: ../other/.git > sub/.git",
        "sub",
    ),
    "a pointer to a bare one that came with the project": (
        "mkdir sub; echo gitdir: ../came > sub/.git",
        "sub",
    ),
    "a link to it, in a new folder": ("mkdir sub; ln -s ../came sub/.git", "sub"),
    "a work tree of it": ("git -C came worktree add -q ../sub", "sub"),
    "a work tree with hooks of its own": (
        "git worktree add -q sub; mkdir sub/.h; cp evil.sh sub/.h/$HOOK",
        "sub",
    ),
    "hooks that come later": ("mkdir sub/.h; cp evil.sh sub/.h/$HOOK; touch sub/x", "sub"),
}


@pytest.mark.slow
async def test_settings_of_the_users_run_nothing_in_other_folders(it: Attacked, evil: Path) -> None:
    await asyncio.sleep(TICK)
    git(it, it.root, "clone", "-q", "--bare", ".", "came")
    git(it, it.root, "init", "-q", "other")
    with (it.root / "came/config").open("a") as config:
        config.write(f"[core]\n\tfsmonitor = {evil}\n")
    for folder in (it.root, it.root / "other"):
        git(it, folder, "config", "core.hooksPath", ".h")
        (folder / ".h").mkdir()
        (folder / ".h/post-index-change").write_text("#!/bin/sh\n")
    await it.shells.scan_work_tree(it.place, SandboxConfig(network="off"))
    for name, (attack, folder) in ELSEWHERE.items():
        outcome = await it.run(f"HOOK=post-index-change; {attack}")
        # Git itself gives a work tree up when its folder is set aside before it is complete.
        (it.root / folder).mkdir(exist_ok=True)
        for _ in range(2):
            (it.root / folder / "first").touch()
            git(it, it.root / folder, "status")
            git(it, it.root / folder, "add", "-A")
        assert not (it.home / "planted").exists(), (name, outcome)
        assert any("Set aside" in warning for warning in outcome.warnings), (name, outcome)
        if not name.startswith("a work tree with"):
            await it.run("git worktree remove -f sub || rm -rf sub; git -C came worktree prune")


READY_MADE = {
    "a folder becomes .git": ("mkdir new; mv ready new/.git", "new"),
    "in a folder that was there": ("mv ready old/.git", "old"),
    "a link named .git": ("ln -s ../ready old/.git", "old"),
    "a file named .git": ("echo gitdir: ../ready > old/.git", "old"),
    "its files by hard links": ("mkdir old/.git; cp -rl ready/. old/.git", "old"),
    "a bare repository gets its HEAD": ("mv almost/_HEAD almost/HEAD", "almost"),
    "by a hard link": ("ln almost/_HEAD almost/HEAD", "almost"),
    "below what looks like a bare one": (
        "cd old; touch HEAD; mkdir objects refs x; mv ../ready x/.git",
        "old/x",
    ),
}


@pytest.mark.slow
async def test_a_repository_put_together_from_files_of_the_project_runs_nothing(
    it: Attacked, evil: Path
) -> None:
    for name, (attack, folder) in READY_MADE.items():
        await asyncio.sleep(TICK)
        git(it, it.root, "init", "-q", "x")
        with (it.root / "x/.git/config").open("a") as config:
            config.write(
                f"[core]\n\tfsmonitor = {evil}\n\tbare = false\n\tworktree = {it.root}/old\n"
            )
        for target in ("ready", "almost"):
            subprocess.run(["cp", "-r", "x/.git", target], cwd=it.root, check=True)
        subprocess.run(["rm", "-rf", "x"], cwd=it.root, check=True)
        (it.root / "ready/config").write_text(f"[core]\n\tfsmonitor = {evil}\n")
        (it.root / "almost/HEAD").rename(it.root / "almost/_HEAD")
        (it.root / "old").mkdir()
        await it.shells.scan_work_tree(it.place, SandboxConfig(network="off"))
        await asyncio.sleep(TICK)
        outcome = await it.run(attack)
        git(it, it.root / folder, "status")
        assert not (it.home / "planted").exists(), (name, outcome)
        await it.run("rm -rf new old ready almost")
