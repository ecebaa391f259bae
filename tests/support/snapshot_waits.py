"""Makes the waits for snapshots as long as a loaded machine needs."""

from collections.abc import Iterator

import pytest

from tests.support.scripted_project import lengthen_snapshot_waits


@pytest.fixture(autouse=True)
def patient_snapshots() -> Iterator[None]:
    """Let turns of a module that imports this wait for their snapshots, which they would go on without."""
    with lengthen_snapshot_waits():
        yield
