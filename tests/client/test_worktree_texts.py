"""What the user reads of work trees."""

from codeloop.client.worktree_texts import describe_merge, describe_rebase, list_losses
from codeloop.schema.api.worktrees import MergeConflict, WorktreeMerge, WorktreeOverview

CONFLICT = WorktreeMerge(
    into="main",
    conflicts=[MergeConflict(file="a.txt", text="<<<<<<< main\n1\n=======\n2\n>>>>>>> one\n")],
)


def test_a_rebase_is_not_called_a_merge() -> None:
    assert describe_rebase("one", WorktreeMerge(into="main", commit="c" * 40)) == [
        "one continues main now: cccccccccccc"
    ]
    first, *_, last = describe_rebase("one", CONFLICT)
    assert first == "Nothing was rebased: 1 file conflicts with main."
    assert last == "Have it solved in the work tree: `git rebase main` there."
    assert describe_merge(CONFLICT)[0] == "Nothing was merged: 1 file conflicts with main."


def test_one_commit_is_not_called_commits() -> None:
    row = WorktreeOverview(name="one", directory="/one", state="ready", created=0, unmerged=1)
    assert list_losses(row) == ["one: 1 commit is in no other branch, tag or remote"]
