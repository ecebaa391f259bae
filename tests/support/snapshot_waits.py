"""Makes the waits for snapshots as long as a loaded machine needs."""

import pytest

from codeloop.agent.answer import turn_diffs
from codeloop.kit.limit import Limit
from codeloop.workspace.snapshot import file_jobs
from codeloop.workspace.snapshot.file_jobs import FileJobs


@pytest.fixture(autouse=True)
def patient_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let turns of a module that imports this wait for their snapshots, which they would go on without."""
    long = Limit("test", 60_000, "ms", "for a test")
    for module in (file_jobs, turn_diffs):
        monkeypatch.setattr(module, "SNAPSHOT_TIME", long)
    monkeypatch.setattr(FileJobs.run_job, "__defaults__", (long,))
