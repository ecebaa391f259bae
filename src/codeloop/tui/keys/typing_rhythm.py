"""Estimates from the user's typing how long they must pause before a key counts as answering a new question."""

from collections import deque

LEAST = 1.0
"""Seconds without a key after which a typing user has stopped, and can have read a question."""
MOST = 3.0
"""The longest required pause, however slowly the user types."""
AT_REST = 0.5
"""The required pause for a user who was not typing: too short to read a question."""
_IDLE = 5.0  # seconds after the last key in which a pausing user may go on typing
_SAMPLES = 32  # pauses that are kept: about the last sentence
_SLOWER = 3  # multiples of a usual pause: a longer one means that typing has stopped


class TypingRhythm:
    """The pauses between a user's last keys. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._last = float("-inf")
        self._pauses: deque[float] = deque(maxlen=_SAMPLES)

    def note_key(self, at: float) -> None:
        """Note that a key was pressed."""
        if 0 < (pause := at - self._last) < _IDLE:
            self._pauses.append(pause)
        self._last = at

    def silence_before_answer(self, now: float, *, has_draft: bool) -> float:
        """Return how many seconds without a key must pass after a question was drawn before a key answers it.

        `has_draft`: the prompt holds text.
        """
        if not has_draft and now - self._last > _IDLE:
            return AT_REST
        usual = sorted(self._pauses)[len(self._pauses) * 3 // 4] if self._pauses else 0.0
        return min(max(LEAST, usual * _SLOWER), MOST)
