"""An open document: its text and version as sent to the server,
and the diagnostics of this version.

`read_text` reads a file as servers are sent it.
"""

import time
from pathlib import Path
from typing import Any

from codeloop.kit.small_files import read_start
from codeloop.lsp.client.diagnostic import Diagnostic, parse_diagnostics
from codeloop.lsp.client.text_positions import Encoding, split_lines
from codeloop.schema.bounds.language_tools import LSP_FILE_BYTES
from codeloop.schema.wire import JSON

# The number of older texts that reports without a version may be about, at most.
_MAX_OLDER_TEXT_COUNT = 3


def read_text(path: Path) -> str | None:
    """Return the text of a file; None if it is missing, too large, or not a regular file."""
    try:
        data = read_start(path, LSP_FILE_BYTES.value + 1)
    except (OSError, ValueError):
        return None
    return data.decode("utf-8-sig", "replace") if len(data) <= LSP_FILE_BYTES.value else None


class OpenDocument:
    """An open document. `pushed` and `pulled`: diagnostics of the current version; None: none yet.

    `is_fenced`: whether the server has answered a request that was sent before this version, so
    that a report without a version is not about a much older text. `pushed_at`: when diagnostics
    arrived, on the monotonic clock.
    `last_report`: the last pulled report, which the next one may refer to by its `result_id`.
    `older_text_count`: how many texts before this one the next reports without a version may still
    be about. `synced_at`: when the text was last that of the file (wall clock).
    """

    def __init__(self, path: Path, language: str, text: str, version: int) -> None:
        self.path = path
        self.language = language
        self.version = version
        self.text = text
        self.pushed: list[Any] | None = None
        self.pulled: list[Any] | None = None
        self.pushed_at = 0.0
        self.is_fenced = False
        self.last_report: list[Any] = []
        self.result_id: str | None = None
        self.older_text_count = 0
        self.synced_at = 0.0

    @property
    def uri(self) -> str:
        """The document's `file:` URI."""
        return self.path.as_uri()

    @property
    def identifier(self) -> JSON:
        """The `TextDocumentIdentifier` of requests."""
        return {"uri": self.uri}

    def change(self, text: str, version: int, *, has_settled: bool) -> None:
        """Set a new text and drop the diagnostics of the old one.

        `has_settled`: whether no further report will be about the old text.
        """
        self.older_text_count = (
            0 if has_settled else min(self.older_text_count + 1, _MAX_OLDER_TEXT_COUNT)
        )
        self.text = text
        self._begin_version(version)

    def resend(self, version: int) -> None:
        """Make the same text a new version: the diagnostics that have arrived may have
        been about an older text.
        """
        self.older_text_count -= 1
        self._begin_version(version)

    def _begin_version(self, version: int) -> None:
        self.version = version
        self.pushed = self.pulled = None
        self.is_fenced = False

    def record_push(self, items: list[Any]) -> None:
        """Record pushed diagnostics of this version."""
        self.pushed = items
        self.pushed_at = time.monotonic()

    def is_quiet(self, pause: float) -> bool:
        """Return whether diagnostics of this version arrived,
        and no further ones for `pause` seconds.
        """
        return self.pushed is not None and time.monotonic() - self.pushed_at >= pause

    def list_diagnostics(self, encoding: Encoding) -> tuple[Diagnostic, ...] | None:
        """Return the diagnostics of the current text; None: none yet."""
        if self.pushed is None and self.pulled is None:
            return None
        return parse_diagnostics(
            [*(self.pulled or ()), *(self.pushed or ())], split_lines(self.text), encoding
        )
