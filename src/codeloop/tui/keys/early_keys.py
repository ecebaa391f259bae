"""Which keys came before a question could be read."""

from collections.abc import Callable


class EarlyKeys:
    """Decides which keys answer a question, and which somebody typed before reading it. Times: monotonic seconds.

    `silence`: the seconds without a key, after the question was drawn, until somebody can have read it.
    """

    def __init__(self, silence: Callable[[], float]) -> None:
        self._silence = silence
        self._doubts_enter = False
        self.ready_at = float("inf")
        """When the question can have been read."""

    def begin(self, *, has_draft: bool) -> None:
        """Begin with a question that is not drawn yet; `has_draft`: text stands in the prompt."""
        self.ready_at = float("inf")
        self._doubts_enter = has_draft

    def wait_from(self, now: float) -> float:
        """Begin the silence now: the question was drawn, or a key came. Return its seconds."""
        silence = self._silence()
        self.ready_at = now + silence
        return silence

    def is_early(self, at: float) -> bool:
        """Return whether a key came too early; then it is part of a draft, and Enter may still be meant for that."""
        if at >= self.ready_at:
            return False
        self._doubts_enter = True
        return True

    def doubts(self, key: str) -> bool:
        """Return whether this key, the first that counts, is an Enter that may be meant for the draft."""
        doubts, self._doubts_enter = self._doubts_enter, False
        return doubts and key == "enter"
