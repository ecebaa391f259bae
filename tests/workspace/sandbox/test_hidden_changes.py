"""What a command hides from `git status` and `git diff` is told when it ends."""

import pytest

from codeloop.schema.config import SandboxConfig
from tests.workspace.sandbox.conftest import Attacked
from tests.workspace.sandbox.test_git_folders import repo

__all__ = ["repo"]
pytestmark = pytest.mark.slow

HIDDEN = {
    "git update-index --assume-unchanged a.txt": "changes of a.txt are hidden from git status",
    "echo 1 > b; git add b; git update-index --skip-worktree b; echo evil > b": "changes of b are hidden",
    "echo 1 > c; git add c; git update-index --index-version 4 --assume-unchanged c": "changes of c are hidden",
    "git update-index --split-index": "the index is split",
    "git replace HEAD HEAD~1": "is shown as",
    "git replace -d $(git rev-parse HEAD)": "is shown as it is again",
    "git commit -q --amend -m x; git update-index --no-split-index": "was moved from",
    "echo '*.evil' >> .git/info/exclude": "info/exclude was changed",
    "mkdir d; echo '*' > d/.gitignore; echo 1 > d/evil": "Hidden from git status with what it names: d/.gitignore",
    "echo .gitignore > .gitignore": "Hidden from git status with what it names: .gitignore (",
}
SHOWN = (
    "echo 1 >> a.txt; git commit -qam more",
    "mkdir e; echo 'x' > e/.gitignore",
    "mkdir .pytest_cache; echo '*' > .pytest_cache/.gitignore",
    "git status; git add -A",
)


async def test_what_is_hidden_from_a_look_at_changes_is_told(repo: Attacked) -> None:
    await repo.shells.scan_work_tree(repo.place, SandboxConfig(network="off"))
    for line, text in HIDDEN.items():
        outcome = await repo.run(line)
        assert text in " ".join(outcome.warnings), (line, outcome)
        assert (await repo.run("true")).warnings == ()
    for line in SHOWN:
        assert (await repo.run(line)).warnings == (), line
