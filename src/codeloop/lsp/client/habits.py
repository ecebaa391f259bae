"""How one server pushes diagnostics: with versions or without, and with which pauses."""

import time
from itertools import count

from codeloop.lsp.client.document import OpenDocument

_LONGEST_PAUSE = 2.0
"""Seconds of silence after which new diagnostics have another cause than the text."""


class PushHabits:
    """What was seen of one server. `versions`: a number for each text that it is sent; none comes again.

    `pause`: seconds of silence after which one that names no versions has said everything of a text; where it
    `repeats` what it says, one that names them, too. `sent_at`,
    `heard_at`: when it was last told of a change, and last said something of a file, on the monotonic clock.
    `began_at`: when it was started. `is_working`: whether it reports that it looks at the project.
    """

    def __init__(self, pause: float, *, repeats: bool = False) -> None:
        self.versions = count(1)
        self.names_versions = False
        self.pause = pause
        self._repeats = repeats
        self.sent_at = self.heard_at = 0.0
        self.began_at = time.monotonic()
        self.is_working = False
        self._rested_at = 0.0

    def is_fresh(self, document: OpenDocument, *, pulls: bool = False) -> bool:
        """Return whether the server has reported all diagnostics of the current text. `pulls`: when pulled."""
        if pulls:
            return document.pulled is not None
        if document.pushed is None or self.names_versions:
            return document.pushed is not None and (not self._repeats or document.is_quiet(self.pause))
        return document.is_quiet(self.pause) and not document.doubt and self.seconds_left(document) == 0

    def note_work(self, *, is_working: bool) -> None:
        """Record the start or end of the server's reported work, before whose end its knowledge is incomplete."""
        if self.is_working and not is_working:
            self._rested_at = time.monotonic()
        self.is_working = is_working

    def seconds_left(self, document: OpenDocument) -> float | None:
        """Return the seconds of further silence after which a text's diagnostics are complete; None: unknown."""
        if document.pushed is None or (self.is_working and not self.names_versions):
            return None
        return max(max(document.pushed_at, self._rested_at) + self.pause - time.monotonic(), 0)

    def lengthen_pause(self, document: OpenDocument) -> None:
        """Lengthen the pause of a server that sent more diagnostics than expected."""
        silent = time.monotonic() - document.pushed_at
        if document.pushed is not None and self.sent_at < document.pushed_at and silent < _LONGEST_PAUSE:
            self.pause = max(self.pause, 1.5 * silent)
