"""What a sandboxed command hides from a look at git's files: behind heaps, in two steps, in what git goes on with."""

from pathlib import Path

import pytest

from codeloop.schema.bounds.sandbox import PLANTED_NEW
from codeloop.schema.wire import replace
from codeloop.workspace.git.planted import finder
from tests.workspace.sandbox.conftest import Attacked
from tests.workspace.sandbox.test_planted import BEFORE, IDENTITY, evil, git, use_git

__all__ = ["evil"]

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
async def test_a_heap_of_files_or_folders_hides_no_link(it: Attacked, evil: Path, victim: Path, attack: str) -> None:
    outcome = await it.run(attack.format(victim=victim))
    use_git(it)
    assert victim.read_text() == "kept"
    assert any("Set aside" in warning for warning in outcome.warnings)


@pytest.mark.slow
async def test_a_link_in_a_rebase_that_waits_takes_no_words_out(it: Attacked, evil: Path, victim: Path) -> None:
    todo = ".git/rebase-merge/git-rebase-todo"
    await it.run(f"{REBASE} sed -i 's/ c3/ ; evil/' {todo}; ln -sf {victim} .git/rebase-merge/done")
    git(it, it.root, "rebase", "--continue")
    assert victim.read_text() == "kept"


@pytest.mark.slow
async def test_a_link_in_a_repository_that_an_earlier_command_made_is_found(
    it: Attacked, evil: Path, victim: Path
) -> None:
    await it.run(f"git init -q sub; cd sub; git {IDENTITY} commit -q --allow-empty -m a")
    await it.run(f"cd sub; rm -f .git/logs/refs/heads/*; ln -s {victim} .git/logs/refs/heads/master")
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
async def test_what_goes_on_with_a_rebase_runs_no_program(it: Attacked, evil: Path, attack: str) -> None:
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


async def test_what_is_made_behind_a_heap_of_folders_is_found_and_what_was_there_is_left_alone(
    it: Attacked, evil: Path
) -> None:
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


async def test_it_says_so_when_more_folders_come_than_are_looked_through(
    it: Attacked, evil: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finder, "PLANTED_NEW", replace(PLANTED_NEW, value=50))
    outcome = await it.run("seq -f b%.0f 100 | xargs mkdir; mkdir zz")
    assert any("look for `.git` in" in warning for warning in outcome.warnings), outcome
