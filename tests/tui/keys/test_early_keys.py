"""How long somebody has to pause before a key can be meant for a question."""

import pytest

from codeloop.tui.keys.early_keys import (
    IDLE_PAUSE_SECONDS,
    MAX_PAUSE_SECONDS,
    MIN_PAUSE_SECONDS,
    TypingRhythm,
)


def typing(*, every: float, keys: int = 20) -> tuple[TypingRhythm, float]:
    """Return the rhythm of somebody who typed at this pace, and when the last key came."""
    rhythm, now = TypingRhythm(), 100.0
    for _ in range(keys):
        now += every
        rhythm.add_key(now)
    return rhythm, now


def test_who_types_fast_pauses_for_a_second() -> None:
    rhythm, now = typing(every=0.1)
    assert rhythm.compute_required_pause(now + 0.05, has_draft=True) == MIN_PAUSE_SECONDS


def test_who_types_slowly_pauses_for_three_of_their_own_pauses() -> None:
    rhythm, now = typing(every=0.7)
    assert rhythm.compute_required_pause(now, has_draft=False) == pytest.approx(2.1)
    rhythm, now = typing(every=2.0)
    assert rhythm.compute_required_pause(now, has_draft=False) == MAX_PAUSE_SECONDS


def test_a_pause_to_think_is_no_end_of_typing_while_text_stands_in_the_prompt() -> None:
    rhythm, now = typing(every=0.1)
    assert rhythm.compute_required_pause(now + 60, has_draft=True) == MIN_PAUSE_SECONDS
    assert rhythm.compute_required_pause(now + 3, has_draft=False) == MIN_PAUSE_SECONDS
    assert rhythm.compute_required_pause(now + 60, has_draft=False) == IDLE_PAUSE_SECONDS


def test_pauses_between_prompts_do_not_count() -> None:
    rhythm, now = typing(every=0.1)
    rhythm.add_key(now + 600)
    assert rhythm.compute_required_pause(now + 601, has_draft=False) == MIN_PAUSE_SECONDS
