"""Each state of a session has one name and one sentence: those of the table,
in the page as in the terminal.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import ROOT

ROWS: list[dict[str, Any]] = json.loads((ROOT / "tests/support/standings.json").read_text())
SECONDS = 600


@pytest.mark.e2e
def test_the_page_names_each_state(source: Path) -> None:
    done = subprocess.run(
        ["node", "e2e/standing.mjs"],
        cwd=source,
        input=json.dumps(ROWS),
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    )
    assert json.loads(done.stdout) == ROWS
