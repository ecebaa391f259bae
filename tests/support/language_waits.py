"""Makes waits for language servers as long as a loaded machine needs."""

import pytest

from codeloop.app.language import servers
from codeloop.lsp import diagnostics_tracker, server_pool
from tests.support.patient_limits import LONG_LIMIT


def lengthen_language_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let edits and searches wait long enough for language servers and ripgrep."""
    long = LONG_LIMIT
    monkeypatch.setattr(server_pool, "LSP_DIAGNOSTICS_TIME", long)
    monkeypatch.setattr(server_pool, "LSP_FIRST_DIAGNOSTICS_TIME", long)
    monkeypatch.setattr(server_pool, "_SHORT_WAIT_SECONDS", long.seconds)
    monkeypatch.setattr(diagnostics_tracker, "LSP_OTHER_FILES_TIME", long)
    monkeypatch.setattr(diagnostics_tracker, "LSP_DIAGNOSTICS_TIME", long)
    monkeypatch.setattr(servers, "LSP_DEPENDENT_FILES_TIME", long)
