"""These tests need the network and other people's programs: they run only when they
are asked for by their mark.
"""

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave them out of a run that does not name the mark."""
    if "interop" not in config.option.markexpr:
        ours = [item for item in items if item.get_closest_marker("interop")]
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]
