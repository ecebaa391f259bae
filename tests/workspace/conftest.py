"""Shells in a work tree of their own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codeloop.workspace.process.shells import ShellContext, Shells

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root", "GIVEN": "given"}


@pytest.fixture
async def shells() -> AsyncIterator[Shells]:
    made = Shells()
    yield made
    await made.close()


@pytest.fixture
def place(tmp_path: Path) -> ShellContext:
    (tmp_path / "work").mkdir()
    return ShellContext("ses_1", tmp_path / "work", ENVIRONMENT, tmp_path / "scratch")
