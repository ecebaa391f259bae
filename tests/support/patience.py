"""Makes waits for language servers as long as a loaded machine needs."""

import pytest

from codeloop.app.language import servers
from codeloop.kit.limit import Limit
from codeloop.lsp import languages, new_diagnostics


def wait_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let edits and searches wait long enough for language servers and ripgrep."""
    long = Limit("test", 20_000, "ms", "for a test")
    monkeypatch.setattr(languages, "LSP_WAIT", long)
    monkeypatch.setattr(languages, "LSP_FIRST", long)
    monkeypatch.setattr(languages, "_SHORT_WAIT", long.seconds)
    monkeypatch.setattr(new_diagnostics, "LSP_OTHERS", long)
    monkeypatch.setattr(new_diagnostics, "LSP_WAIT", long)
    monkeypatch.setattr(servers, "LSP_USERS_TIME", long)
