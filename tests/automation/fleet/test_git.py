"""Git for the jobs of a fleet: a command that takes too long is ended,
and its error names the repository.
"""

import pytest

from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import replace
from codeloop_automation.fleet import git


def test_git_that_takes_too_long_is_ended_and_its_repository_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(git, "FLEET_GIT", replace(git.FLEET_GIT, value=0))
    with pytest.raises(CodeloopError, match=r"^git took longer than 0 s for /the/repository\.$"):
        git.run_git("/the/repository", "-c", "alias.wait=!sleep 30", "wait")
