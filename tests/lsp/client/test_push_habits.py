"""What is learned of a server that tells diagnostics by itself."""

import time
from pathlib import Path

import pytest

from codeloop.lsp.client.document import OpenDocument
from codeloop.lsp.client.push_habits import PushHabits


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only the test moves; its seconds are the first and only item."""
    now = [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def said(habits: PushHabits, ago: float) -> OpenDocument:
    document = OpenDocument(Path("/a"), "x", "", next(habits.versions))
    document.record_push([])
    document.pushed_at = time.monotonic() - ago
    return document


@pytest.mark.parametrize(
    ("silent", "sent_ago", "pause"),
    [(0.8, 1.0, 1.2), (0.1, 1.0, 0.3), (0.8, 0.5, 0.3), (30.0, 40.0, 0.3)],
)
def test_a_longer_pause_is_learned_when_nothing_else_explains_it(
    silent: float, sent_ago: float, pause: float
) -> None:
    habits = PushHabits(0.3)
    document = said(habits, silent)
    habits.sent_at = time.monotonic() - sent_ago
    habits.learn_pause(document)
    assert habits.pause == pytest.approx(pause)


def test_what_may_be_about_an_older_text_is_not_believed() -> None:
    habits = PushHabits(0.3)
    document = said(habits, 1.0)
    assert habits.has_all_diagnostics(document)
    document.change("a", next(habits.versions), has_settled=habits.has_settled(document))
    assert not habits.has_settled(document), "nothing was said of a"
    document.change("b", next(habits.versions), has_settled=False)
    document.record_push([])
    document.pushed_at -= 1.0
    assert not habits.has_all_diagnostics(document)
    document.resend(next(habits.versions))
    document.record_push([])
    assert not habits.has_all_diagnostics(document), "it may go on"
    document.pushed_at -= 1.0
    assert habits.has_all_diagnostics(document)


def test_a_report_after_the_analysis_of_the_project_is_expected_and_teaches_no_pause(
    clock: list[float],
) -> None:
    habits = PushHabits(0.3)
    document = said(habits, 1.0)
    habits.record_work(is_working=True)
    assert not habits.has_settled(document), "it reports at the end"
    habits.record_work(is_working=False)
    assert not habits.has_settled(document), "it reports in a moment"
    habits.learn_pause(document)
    assert habits.pause == 0.3
    document.record_push([])
    document.pushed_at += 0.001
    clock[0] += 0.31
    assert habits.has_settled(document)
