"""The services' own libraries: what they send and read, byte for byte, beside ours."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from codeloop.model.chat import ToolSpec
from tests.cli.program import serving
from tests.interop.stage import HERE, cache, filled
from tests.support.answers import Answer, Call, Counts
from tests.support.models import ask
from tests.support.programs import ROOT
from tests.support.rows import ROWS

pytestmark = pytest.mark.interop
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
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
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:].decode()
    return done.stdout


def test_the_signatures_that_ours_are_compared_with_are_botocores(python: Path) -> None:
    assert json.loads(run(python, "signatures.py")) == json.loads(SIGNATURES.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["chat", "responses", "anthropic", "google", "bedrock"])
async def test_the_servers_of_our_tests_speak_as_the_services_do(python: Path, name: str) -> None:
    """The services' own libraries are served by them, and read of each answer what our adapters read."""
    calls = (Call("read", '{"path": "a"}', "call_1"), Call("read", '{"path": "größe 漢字"}', "call_2"))
    answer = Answer(text="Größe, read in pieces.", deltas=4, calls=calls, counts=Counts(input=100, output=20))
    with serving([answer]) as server:
        said = json.loads(run(python, "clients.py", name, server.url.removesuffix("/v1")))
        model = ROWS[name].open(server.url)
        got = await ask(model, tools=(ToolSpec("read", "Read.", SCHEMA),))
        await model.aclose()
    ours = [[each[0], each[1], json.loads(each[2])] for each in got.ready]
    assert (said["text"], said["calls"]) == (got.text, ours)
    assert (said["input"], said["output"]) == (got.end.tokens.input, got.end.tokens.output)
