"""What bash does with a line that was allowed is a part of what was allowed,
for lines that nobody thought of.
"""

import os
from pathlib import Path

import pytest

from codeloop.schema.permission import Action
from tests.permission.attacks.generator import LineGenerator
from tests.permission.attacks.judge import Judge
from tests.permission.attacks.observed import Ran, Stage

LINES = int(os.environ.get("CODELOOP_LINES", "1000"))
PARTS = 4
ALLOWED = (
    "echo *",
    "printf *",
    "ls *",
    "cat *",
    "git status *",
    "head *",
    ": *",
    "true *",
    "test *",
    "[ *",
    "cd *",
)


def is_allowed(ran: Ran) -> bool:
    """Return whether a program that ran is one that the rules allow,
    in the environment that it was to have.
    """
    match ran.argv:
        case ("ls" | "cat" | "head", *_):
            return not ran.is_changed
        case ("git", "status", *_):
            return not ran.is_changed
        case _:
            return False


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("first", ["ask", "deny"])
def test_bash_runs_nothing_but_what_was_allowed(tmp_path: Path, part: int, first: Action) -> None:
    stage = Stage(tmp_path)
    judge = Judge(stage, first, ALLOWED)
    generator = LineGenerator(part)
    drawn = [generator.line() for _ in range(LINES // PARTS)]
    lines = [line for line in drawn if "\0" not in line and judge.allows(line)]
    assert len(lines) > len(drawn) // 100, "the generator draws hardly anything that is allowed"
    before = stage.state()
    for line, ran in zip(lines, stage.run(lines), strict=True):
        assert all(map(is_allowed, ran)), (line, ran)
    after = stage.state()
    if after != before:
        assert not [line for line in lines if _changes(stage, line, before)]


def _changes(stage: Stage, line: str, before: str) -> bool:
    """Run one line alone, to find which one changed the work tree."""
    stage.refill()
    stage.run([line])
    return stage.state() != before
