"""Tests of what a server says wait for it as long as a loaded machine needs; those of limits set their own."""

import pytest

from codeloop.kit.limit import Limit
from codeloop.lsp import brought, languages
from codeloop.tool.builtin.language import outline


@pytest.fixture(autouse=True)
def patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("lsp"):
        return  # those are about the real limits
    long = Limit("test", 20_000, "ms", "for a test")
    monkeypatch.setattr(languages, "LSP_WAIT", long)
    monkeypatch.setattr(languages, "_IMPATIENT", long.seconds)
    monkeypatch.setattr(brought, "LSP_OTHERS", long)
    monkeypatch.setattr(brought, "LSP_WAIT", long)
    monkeypatch.setattr(outline, "LSP_OUTLINE_WAIT", long)
