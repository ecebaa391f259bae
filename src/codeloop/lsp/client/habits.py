"""How one server pushes diagnostics: with versions or without, and with which pauses."""

import time
from itertools import count

from codeloop.lsp.client.document import OpenDocument

_MAX_PAUSE_SECONDS = 2.0
"""Diagnostics that come after a longer silence have another cause than the text."""


class PushHabits:
    """What was observed of one server. `versions`: numbers for the texts that it is sent, each used once.

    `pause`: seconds of silence after which the diagnostics of a text are complete, where the server names no versions
    or `repeats` its reports. `sent_at`, `received_at`: when it was last sent a change, and last reported on a file, on
    the monotonic clock. `began_at`: when it was started. `is_working`: whether it reports that it analyses the project.
    """

    def __init__(self, pause: float, *, repeats: bool = False) -> None:
        self.versions = count(1)
        self.names_versions = False
        self.pause = pause
        self._repeats = repeats
        self.sent_at = self.received_at = 0.0
        self.began_at = time.monotonic()
        self.is_working = False
        self._work_ended_at = 0.0

    def is_fresh(self, document: OpenDocument, *, pulls: bool = False) -> bool:
        """Return whether the server has reported all diagnostics of the current text. `pulls`: when pulled."""
        if pulls:
            return document.pulled is not None
        if document.pushed is None or self.names_versions:
            return document.pushed is not None and (not self._repeats or document.is_quiet(self.pause))
        return document.is_quiet(self.pause) and not document.older_texts and self.find_seconds_left(document) == 0

    def note_work(self, *, is_working: bool) -> None:
        """Record the start or end of the work that the server reports; its diagnostics are incomplete until the end."""
        if self.is_working and not is_working:
            self._work_ended_at = time.monotonic()
        self.is_working = is_working

    def find_seconds_left(self, document: OpenDocument) -> float | None:
        """Return the seconds of further silence after which a text's diagnostics are complete; None: unknown."""
        if document.pushed is None or (self.is_working and not self.names_versions):
            return None
        return max(max(document.pushed_at, self._work_ended_at) + self.pause - time.monotonic(), 0)

    def lengthen_pause(self, document: OpenDocument) -> None:
        """Lengthen the pause of a server that sent more diagnostics than expected."""
        silent = time.monotonic() - document.pushed_at
        if document.pushed is not None and self.sent_at < document.pushed_at and silent < _MAX_PAUSE_SECONDS:
            self.pause = max(self.pause, 1.5 * silent)
