"""Which options of git's commands count as losses, in every spelling that git accepts."""

import pytest

from codeloop.permission.git_losses import discards_work

LOSSES = (
    "commit --amend",
    "commit -qm y --amen",
    "commit -n -m x",
    "commit -anm x",
    "commit --no-verify",
    "reset -q --hard HEAD~1",
    "clean -fd",
    "clean -xdf",
    "clean -qf",
    "checkout -qf main",
    "checkout -B main",
    "switch -C main",
    "switch --discard-changes main",
    "branch -qD old",
    "branch -M new",
    "tag -d v1",
    "tag -af v1",
    "stash drop",
    "stash drop stash@{1}",
    "stash clear",
    "worktree remove --force x",
    "read-tree --reset -u HEAD",
    "filter-repo --path a",
    "-c core.hooksPath=/dev/null commit",
    "config core.hooksPath /dev/null",
)
HARMLESS = (
    "commit",
    "commit -mnew",
    "commit -uno -m x",
    "commit -a -m fix",
    "commit --allow-empty",
    "reset --soft HEAD~1",
    "checkout -b fix",
    "checkout -bfix",
    "switch -c fix",
    "branch -d merged",
    "branch -u origin/f",
    "tag v1",
    "tag -n5",
    "clean -n",
    "stash pop",
    "stash push -m drop",
    "worktree add x",
    "rebase main",
    "commit-tree -n x",
)


@pytest.mark.parametrize("words", LOSSES)
def test_a_loss_is_asked_about_however_it_is_spelled(words: str) -> None:
    assert discards_work(f"git {words}")


@pytest.mark.parametrize("words", HARMLESS)
def test_what_loses_nothing_is_none(words: str) -> None:
    assert not discards_work(f"git {words}")


def test_options_before_the_subcommand_hide_nothing() -> None:
    assert discards_work("git -C sub reset --hard", ("git reset --hard",))
    assert not discards_work("gitk reset --hard")
