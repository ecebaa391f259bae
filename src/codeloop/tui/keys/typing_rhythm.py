"""How a user types, and so how long they have to pause before a key can be meant for a question that just appeared."""

from collections import deque

LEAST = 1.0
"""Seconds without a key after which somebody who was typing has stopped, and can have read a question."""
MOST = 3.0
"""The longest such pause that is asked for, however slowly somebody types."""
AT_REST = 0.5
"""Seconds in which nobody can read a question and answer it, for who was not typing."""
_IDLE = 5.0  # seconds after the last key in which somebody who thinks may go on
_KEPT = 32  # pauses
_SLOWER = 3  # times a usual pause: who waits that long does something else


class TypingRhythm:
    """The pauses between a user's last keys. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._last = float("-inf")
        self._pauses: deque[float] = deque(maxlen=_KEPT)

    def note_key(self, at: float) -> None:
        """Note that a key was pressed."""
        if 0 < (pause := at - self._last) < _IDLE:
            self._pauses.append(pause)
        self._last = at

    def silence_before_answer(self, now: float, *, has_draft: bool) -> float:
        """Return for how many seconds no key may come after a question was drawn, before the next one answers it.

        `has_draft`: text stands in the prompt.
        """
        if not has_draft and now - self._last > _IDLE:
            return AT_REST
        usual = sorted(self._pauses)[len(self._pauses) * 3 // 4] if self._pauses else 0.0
        return min(max(LEAST, usual * _SLOWER), MOST)
