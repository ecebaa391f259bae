"""Detects keys that were typed before a question could be read."""

from collections.abc import Callable


class EarlyKeys:
    """Decides which keys answer a question, and which were typed before it could be read. Times are monotonic seconds.

    `silence`: seconds without a key after drawing until keys count as an answer.
    """

    def __init__(self, silence: Callable[[], float]) -> None:
        self._silence = silence
        self._must_confirm_enter = False
        self.ready_at = float("inf")
        """When the question can have been read."""

    def begin(self, *, has_draft: bool) -> None:
        """Start with a question that is not drawn yet; `has_draft`: the prompt holds text."""
        self.ready_at = float("inf")
        self._must_confirm_enter = has_draft

    def wait_from(self, now: float) -> float:
        """Start the wait at `now`, when the question was drawn or a key came too early; return its seconds."""
        silence = self._silence()
        self.ready_at = now + silence
        return silence

    def is_early(self, at: float) -> bool:
        """Return whether a key came too early, so that it belongs to the draft. `at`: when it was pressed."""
        if at >= self.ready_at:
            return False
        self._must_confirm_enter = True
        return True

    def needs_confirmation(self, key: str) -> bool:
        """Return whether a key is Enter, the first key that could answer, and may be meant to send the draft."""
        must_confirm, self._must_confirm_enter = self._must_confirm_enter, False
        return must_confirm and key == "enter"
