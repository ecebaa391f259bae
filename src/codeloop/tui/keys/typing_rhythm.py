"""Estimates, from how fast the user types, how long a pause must be before a key counts as answering a new question.

Without such a pause, a user who is typing a prompt would answer a question that they have not read.
"""

from collections import deque

MIN_PAUSE = 1.0
"""Seconds without a key after which a typing user has stopped, and can have read a question."""
MAX_PAUSE = 3.0
"""Seconds of the longest pause that is required, however slowly the user types."""
IDLE_PAUSE = 0.5
"""Seconds of the pause that is required of a user who was not typing: nobody reads a question faster."""
_IDLE_AFTER = 5.0
"""Seconds after the last key from which the user counts as not typing."""
_SAMPLES = 32
"""Pauses that are kept: about those of the last sentence."""
_STOPPED_FACTOR = 3
"""A pause so many times longer than a usual one means that typing has stopped."""


class TypingRhythm:
    """The pauses between a user's last keys. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._last = float("-inf")
        self._pauses: deque[float] = deque(maxlen=_SAMPLES)

    def add_key(self, at: float) -> None:
        """Record that a key was pressed."""
        if 0 < (pause := at - self._last) < _IDLE_AFTER:
            self._pauses.append(pause)
        self._last = at

    def silence_before_answer(self, now: float, *, has_draft: bool) -> float:
        """Return how many seconds without a key must pass after a question was drawn before a key answers it.

        `has_draft`: the prompt holds text.
        """
        if not has_draft and now - self._last > _IDLE_AFTER:
            return IDLE_PAUSE
        usual = sorted(self._pauses)[len(self._pauses) * 3 // 4] if self._pauses else 0.0
        return min(max(MIN_PAUSE, usual * _STOPPED_FACTOR), MAX_PAUSE)
