"""Money that was spent stays spent: whatever becomes of a session, budgets and sums count what its requests cost."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, result, serving
from tests.support.answers import Answer, Counts

DEAR = Answer(text="Hello.", counts=Counts(input=20_000, output=2_000))
"""An answer for 0.024 dollars."""
PRICE = 0.024


def read_stats(desk: Desk, *flags: str) -> dict[str, Any]:
    return json.loads(desk.run("stats", "--json", *flags).stdout)


def ask(desk: Desk, *flags: str) -> dict[str, Any]:
    """Run a prompt, and return its result."""
    return result(desk.run("run", "--title", "T", "--format", "json", *flags, "go"))


def test_undone_turns_stay_spent_and_count_for_the_budget(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([DEAR]) as server:
        desk.use(server, budget={"day": 0.05})
        reasons = [ask(desk)["reason"]]
        for _ in range(3):
            assert desk.run("undo").returncode == 0
            reasons.append(ask(desk, "--continue")["reason"])
        assert reasons == ["done", "done", "done", "limit"]
        assert len(server.requests) == 3
    stats = read_stats(desk)
    assert stats["total"]["cost"] == pytest.approx(3 * PRICE)
    assert stats["discarded"]["cost"] == pytest.approx(3 * PRICE)
    assert stats["budgets"][0]["spent"] == pytest.approx(3 * PRICE)
