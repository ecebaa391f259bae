"""The browser UI in a real browser: these run only when they are asked for by their mark, e2e."""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import ROOT

SOURCE = ROOT / "web"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave them out of a run that does not name the mark."""
    if "e2e" not in config.option.markexpr:
        ours = [item for item in items if item.get_closest_marker("e2e")]
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]


@pytest.fixture(scope="session")
def source() -> Path:
    """The folder of the page's source, with the packages of its lock file."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed here")
    with (Path(sys.prefix) / ".web-packages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # each worker of the run gets here
        if not (SOURCE / "node_modules" / ".package-lock.json").exists():
            done = subprocess.run(
                [npm, "ci"], cwd=SOURCE, capture_output=True, text=True, check=False, timeout=300
            )
            if done.returncode:
                pytest.skip(f"the packages can't be had: {done.stderr.strip()[-400:]}")
    return SOURCE
