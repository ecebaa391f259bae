"""Detects keys that were typed before a question could be read, so that they do not answer it.

A user who is typing a prompt when a question appears would otherwise answer it without having read
it. Keys count as an answer only after a pause,
whose length is estimated from how fast the user types.
"""

from collections import deque
from collections.abc import Callable

MIN_PAUSE_SECONDS = 1.0
"""The pause after which a typing user has stopped, and can have read a question."""
MAX_PAUSE_SECONDS = 3.0
"""The longest pause that is required, however slowly the user types."""
IDLE_PAUSE_SECONDS = 0.5
"""The pause that is required of a user who was not typing: nobody reads a question faster."""
_IDLE_SECONDS = 5.0
"""Seconds after the last key from which the user counts as not typing."""
_MAX_RECORDED_PAUSES = 32
"""The number of pauses that are kept: about those of the last sentence."""
_STOPPED_FACTOR = 3
"""A pause this many times as long as a usual one means that typing has stopped."""


class TypingRhythm:
    """The pauses between a user's last keys. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._last_key_at = float("-inf")
        self._pauses: deque[float] = deque(maxlen=_MAX_RECORDED_PAUSES)

    def add_key(self, pressed_at: float) -> None:
        """Record that a key was pressed."""
        pause = pressed_at - self._last_key_at
        # Longer pauses are not part of the rhythm: the user has stopped, and begins again.
        if 0 < pause < _IDLE_SECONDS:
            self._pauses.append(pause)
        self._last_key_at = pressed_at

    def compute_required_pause(self, now: float, *, has_draft: bool) -> float:
        """Return how many seconds without a key must pass after a question was drawn
        before a key answers it.

        `has_draft`: the prompt holds text.
        """
        if not has_draft and now - self._last_key_at > _IDLE_SECONDS:
            return IDLE_PAUSE_SECONDS
        # The third quartile: longer than most pauses between letters,
        # and not moved by a single long one.
        usual_pause = sorted(self._pauses)[len(self._pauses) * 3 // 4] if self._pauses else 0.0
        return min(max(MIN_PAUSE_SECONDS, usual_pause * _STOPPED_FACTOR), MAX_PAUSE_SECONDS)


class EarlyKeys:
    """Decides which keys answer a question, and which were typed before it could be read.
    Times are monotonic seconds.

    `compute_pause` returns how many seconds without a key must pass after drawing
    until keys count as an answer.
    """

    def __init__(self, compute_pause: Callable[[], float]) -> None:
        self._compute_pause = compute_pause
        self._must_confirm_enter = False
        self.ready_at = float("inf")
        """When the question can have been read."""

    def begin_question(self, *, has_draft: bool) -> None:
        """Start with a question that is not drawn yet; `has_draft`: the prompt holds text."""
        self.ready_at = float("inf")
        self._must_confirm_enter = has_draft

    def start_pause(self, now: float) -> float:
        """Start the pause at `now`, when the question was drawn or a key came too early;
        return its seconds.
        """
        pause = self._compute_pause()
        self.ready_at = now + pause
        return pause

    def reject_early_key(self, pressed_at: float) -> bool:
        """Return whether a key came too early, so that it belongs to the draft;
        then an Enter must be confirmed.
        """
        if pressed_at >= self.ready_at:
            return False
        # A user who is still typing will end the line with Enter, perhaps only after the pause.
        self._must_confirm_enter = True
        return True

    def reject_first_enter(self, key: str) -> bool:
        """Return whether a key is an Enter that may be meant to send the draft;
        only the first key can be rejected.
        """
        must_confirm, self._must_confirm_enter = self._must_confirm_enter, False
        return must_confirm and key == "enter"
