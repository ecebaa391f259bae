"""These tests use the real program in a terminal of tmux: they run only when they
are asked for by their mark.
"""

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave them out of a run that does not name the mark."""
    if "e2e" not in config.option.markexpr:
        ours = [item for item in items if item.get_closest_marker("e2e")]
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]
