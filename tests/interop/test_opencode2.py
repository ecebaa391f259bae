"""A day's work with a client of OpenCode 2, which validates each answer and event."""

import asyncio
import sys
from pathlib import Path

import pytest

from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from tests.interop.stage import INTEROP_FOLDER, fill_folder, find_cache
from tests.server.support.serving import PASSWORD, served

pytestmark = pytest.mark.interop
QUESTION = {"question": "Which?", "header": "Which", "options": [{"label": "A", "description": ""}]}
ANSWERS = (
    ScriptedAnswer(calls=(ScriptedCall("bash", {"command": "echo hi"}),)),
    ScriptedAnswer(calls=(ScriptedCall("question", {"questions": [QUESTION]}),)),
    ScriptedAnswer(text="Done."),
    ScriptedAnswer(text="Done."),
)


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of an environment with that client."""
    wanted = INTEROP_FOLDER / "opencode2" / "requirements.txt"
    pip = ["env", "bin/python", "-m", "pip", "--no-input", "--retries=1", "-qq", "install", "-r"]
    commands = [[sys.executable, "-m", "venv", "."], [*pip, wanted.name]]
    return fill_folder(find_cache("opencode2", wanted), [wanted], commands) / "bin" / "python"


async def test_its_client_does_a_days_work(python: Path, tmp_path: Path) -> None:
    async with served(tmp_path, ANSWERS, permission={"bash": "ask"}) as it:
        program = INTEROP_FOLDER / "opencode2" / "day.py"
        client = await asyncio.create_subprocess_exec(
            python,
            program,
            it.url,
            PASSWORD,
            str(it.work),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        printed, _ = await client.communicate()
        assert (client.returncode, b"Traceback" in printed) == (0, False), printed.decode()
        assert b"the day is over" in printed
