"""Tests of what a server says wait for it as long as a loaded machine needs; those of limits set their own."""

import pytest

from tests.support.patience import wait_long


@pytest.fixture(autouse=True)
def patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.node.get_closest_marker("lsp"):  # those are about the real limits
        wait_long(monkeypatch)
