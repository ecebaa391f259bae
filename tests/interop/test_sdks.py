"""The services' own libraries: what they send and read, byte for byte, beside ours."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.stage import HERE, cache, filled
from tests.support.programs import ROOT

pytestmark = pytest.mark.interop
SIGNATURES = ROOT / "tests" / "model" / "credentials" / "aws" / "signatures.json"


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of an environment with these libraries."""
    wanted = HERE / "sdks" / "requirements.txt"
    pip = ["bin/python", "-m", "pip", "--disable-pip-version-check", "--no-input", "--retries=1", "-qq"]
    commands = [[sys.executable, "-m", "venv", "."], ["env", *pip, "install", "-r", wanted.name]]
    return filled(cache("sdks", wanted), [wanted], commands) / "bin" / "python"


def run(python: Path, program: str, *arguments: str) -> bytes:
    """Return what a program of `sdks/` prints."""
    command = [python, HERE / "sdks" / program, *arguments]
    return subprocess.run(command, capture_output=True, timeout=120, check=True).stdout


def test_the_signatures_that_ours_are_compared_with_are_botocores(python: Path) -> None:
    assert json.loads(run(python, "signatures.py")) == json.loads(SIGNATURES.read_text(encoding="utf-8"))
