"""Conversations over HTTP, which take more than 0.15 s of a core each, are left to `make slow`."""

from collections.abc import Sequence
from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark those of this folder."""
    folder = Path(__file__).parent
    for item in items:
        if "[http" in item.name and item.path.is_relative_to(folder):
            item.add_marker(pytest.mark.slow)
