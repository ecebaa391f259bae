"""The screens are of one version: that of the program differs from commit to commit."""

import pytest

from codeloop.kit.version import RELEASE


@pytest.fixture(autouse=True)
def show_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codeloop.tui.ui.__version__", RELEASE)
