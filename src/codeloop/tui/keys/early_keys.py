"""Detects keys that were typed before a question could be read."""

from collections.abc import Callable


class EarlyKeys:
    """Decides which keys answer a question, and which were typed before it could be read. Times are monotonic seconds.

    `silence`: seconds without a key after drawing until keys count as an answer.
    """

    def __init__(self, silence: Callable[[], float]) -> None:
        self._silence = silence
        self._doubts_enter = False
        self.ready_at = float("inf")
        """When the question can have been read."""

    def begin(self, *, has_draft: bool) -> None:
        """Start with a question that is not drawn yet; `has_draft`: the prompt holds text."""
        self.ready_at = float("inf")
        self._doubts_enter = has_draft

    def wait_from(self, now: float) -> float:
        """Begin to wait, since the question was drawn or another key came; return for how many seconds."""
        silence = self._silence()
        self.ready_at = now + silence
        return silence

    def is_early(self, at: float) -> bool:
        """Return whether a key came too early; then it belongs to the draft."""
        if at >= self.ready_at:
            return False
        self._doubts_enter = True
        return True

    def doubts(self, key: str) -> bool:
        """Return whether a key is the first that could answer, and an Enter that may be meant for the draft."""
        doubts, self._doubts_enter = self._doubts_enter, False
        return doubts and key == "enter"
