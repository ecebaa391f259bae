"""Whoever follows a tree that can't be watched is told why, and what helps."""

import errno
from pathlib import Path

import pytest

from codeloop.workspace.watch.project_watch import describe_watch_error
from codeloop.workspace.watch.tree_watch import TooManyFolders

ROOT = Path("/w")


@pytest.mark.parametrize(
    ("error", "said", "not_said"),
    [
        (TooManyFolders(), "/w has more than 100,000 folders", "sysctl"),
        (OSError(errno.ENOSPC, "no space"), "fs.inotify.max_user_watches", "max_user_instances"),
        (OSError(errno.EMFILE, "no inotify"), "max_user_instances", "more folders than"),
        (OSError(errno.ENAMETOOLONG, "too long"), "(File name too long)", "sysctl"),
        (OSError("inotify exists on Linux only"), "can't be watched on this system", "sysctl"),
    ],
)
def test_each_limit_is_told_with_what_helps(error: OSError, said: str, not_said: str) -> None:
    text = describe_watch_error(ROOT, error)
    assert said in text
    assert not_said not in text
