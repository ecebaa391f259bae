"""Makes waits for language servers as long as a loaded machine needs."""

import pytest

from codeloop.app.language import servers
from codeloop.kit.limit import Limit
from codeloop.lsp import languages, new_diagnostics


def wait_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let edits and searches wait long enough for language servers and ripgrep."""
    long = Limit("test", 20_000, "ms", "for a test")
    monkeypatch.setattr(languages, "LSP_DIAGNOSTICS_TIME", long)
    monkeypatch.setattr(languages, "LSP_FIRST_DIAGNOSTICS_TIME", long)
    monkeypatch.setattr(languages, "_SHORT_WAIT", long.seconds)
    monkeypatch.setattr(new_diagnostics, "LSP_OTHER_FILES_TIME", long)
    monkeypatch.setattr(new_diagnostics, "LSP_DIAGNOSTICS_TIME", long)
    monkeypatch.setattr(servers, "LSP_DEPENDENT_FILES_TIME", long)
