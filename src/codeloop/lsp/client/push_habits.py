"""The habits of a server that pushes diagnostics: whether it names versions,
and after which silence it is done.

They decide when the diagnostics of a text are complete, which the protocol has no message for.
"""

import time
from itertools import count

from codeloop.lsp.client.document import OpenDocument

# Diagnostics that come after a longer silence have another cause than the text.
_MAX_PAUSE_SECONDS = 2.0
# The pause is so many times as long as the longest silence that was observed between two reports.
_PAUSE_MARGIN = 1.5


class PushHabits:
    """Observations of one server. `versions`: the numbers of the texts that it is sent,
    each used once.

    `pause`: seconds of silence after which the diagnostics of a text are complete, if the server
    names no versions, or reports several times on one text (`repeats_reports`). `sent_at`,
    `received_at`, `began_at`: when it was last sent a change, last reported on a file, and was
    initialised, on the monotonic clock. `is_working`: whether it reports that
    it analyses the project.
    """

    def __init__(self, pause: float, *, repeats_reports: bool = False) -> None:
        self.versions = count(1)
        self.names_versions = False
        self.pause = pause
        self._repeats_reports = repeats_reports
        self.sent_at = self.received_at = 0.0
        self.began_at = time.monotonic()
        self.is_working = False
        self._work_ended_at = 0.0

    def has_all_diagnostics(self, document: OpenDocument, *, pulls: bool = False) -> bool:
        """Return whether all diagnostics of the current text have arrived.
        `pulls`: they are requested, not pushed.
        """
        if pulls:
            return document.pulled is not None
        if document.pushed is None:
            return False
        if self.names_versions:
            return not self._repeats_reports or document.is_quiet(self.pause)
        is_silent = document.is_quiet(self.pause) and self.measure_seconds_left(document) == 0
        return is_silent and not document.older_text_count

    def has_settled(self, document: OpenDocument) -> bool:
        """Return whether no further report will be about the current text,
        as far as the server's habits tell.
        """
        seconds_since_work = time.monotonic() - self._work_ended_at
        # A server that has just analysed the project reports anew on the open files.
        awaits_report = self.is_working or (
            document.pushed_at < self._work_ended_at and seconds_since_work < _MAX_PAUSE_SECONDS
        )
        return document.is_quiet(self.pause) and not document.older_text_count and not awaits_report

    def record_work(self, *, is_working: bool) -> None:
        """Record the start or end of the work that the server reports; its diagnostics are
        incomplete until the end.
        """
        if self.is_working and not is_working:
            self._work_ended_at = time.monotonic()
        self.is_working = is_working

    def measure_seconds_left(self, document: OpenDocument) -> float | None:
        """Return the seconds of further silence after which a text's diagnostics are complete;
        None: unknown.
        """
        if document.pushed is None or (self.is_working and not self.names_versions):
            return None
        silent_since = max(document.pushed_at, self._work_ended_at)
        return max(silent_since + self.pause - time.monotonic(), 0)

    def learn_pause(self, document: OpenDocument) -> None:
        """Learn from a further report on the same text: the pause is longer than the
        silence before it from now on.
        """
        silent_seconds = time.monotonic() - document.pushed_at
        # Only if in between no change was sent and no analysis of the project ended,
        # which would explain the report.
        explained_at = max(self.sent_at, self._work_ended_at)
        is_late = (
            document.pushed is not None
            and not self.is_working
            and explained_at < document.pushed_at
        )
        if is_late and silent_seconds < _MAX_PAUSE_SECONDS:
            self.pause = max(self.pause, _PAUSE_MARGIN * silent_seconds)
