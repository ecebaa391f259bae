"""Tests of what a server says wait for it as long as a loaded machine needs;
those of limits set their own.
"""

import pytest

from tests.support.language_waits import lengthen_language_waits


@pytest.fixture(autouse=True)
def patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.node.get_closest_marker("lsp"):  # those are about the real limits
        lengthen_language_waits(monkeypatch)
