"""Commands of git that discard work, rewrite commits or pass over checks are asked about,
in the sandbox as well.
"""

from pathlib import Path

import pytest

from tests.cli.program import Desk
from tests.support.sandbox_support import has_sandbox

ASKED = (
    "git commit --amend -m x",
    "git commit -am x --ame",
    "git commit -m x --no-verify",
    "git commit -n -m x",
    "git reset --hard",
    "git -C . reset -q --hard HEAD~1",
    "git checkout -f main",
    "git switch --discard-changes main",
    "git clean -fdx",
    "git branch -D old",
    "git branch --delete --force old",
    "git tag -d v1",
    "git stash drop",
    "git stash clear",
    "git worktree remove --force ../tree",
    "git reflog expire --all",
    "git status && bash -c 'git reset --hard'",
)
ALLOWED = (
    "git commit -m x",
    "git reset HEAD~1",
    "git branch -d old",
    "git stash",
    "git checkout main",
    "git tag v1",
)


@pytest.mark.slow
@pytest.mark.skipif(not has_sandbox(), reason="without a sandbox every command is asked about")
def test_what_git_can_not_give_back_is_asked_about(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.git("init", "-q")
    verdicts = {
        line: desk.run("debug", "permission", line).stdout.split("\n")[1].split()[0]
        for line in ASKED + ALLOWED
    }
    assert verdicts == {**dict.fromkeys(ASKED, "ask"), **dict.fromkeys(ALLOWED, "allow")}
