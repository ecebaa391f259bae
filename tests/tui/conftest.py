"""What every test of the terminal UI starts from."""

import pytest


@pytest.fixture(autouse=True)
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw as on a usual terminal, wherever the tests run."""
    for name in ("NO_COLOR", "COLORFGBG", "TMUX", "STY", "SSH_TTY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
