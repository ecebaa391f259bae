"""The services' own libraries: what they send and read, byte for byte, beside ours."""

import json
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.chat import (
    AssistantModelMessage,
    CallPiece,
    ModelMessage,
    ModelRequest,
    ResultPiece,
    TextPiece,
    ToolModelMessage,
    ToolSpec,
    UserModelMessage,
)
from tests.cli.program import serving
from tests.interop.stage import INTEROP_FOLDER, fill_folder, find_cache
from tests.support.adapter_rows import ADAPTER_ROWS
from tests.support.answers import Answer, Call, Counts
from tests.support.models import send_request
from tests.support.programs import ROOT

pytestmark = pytest.mark.interop
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
SIGNATURES = ROOT / "tests" / "model" / "credentials" / "aws" / "signatures.json"


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of an environment with these libraries."""
    wanted = INTEROP_FOLDER / "sdks" / "requirements.txt"
    pip = [
        "bin/python",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        "--retries=1",
        "-qq",
    ]
    commands = [[sys.executable, "-m", "venv", "."], ["env", *pip, "install", "-r", wanted.name]]
    return fill_folder(find_cache("sdks", wanted), [wanted], commands) / "bin" / "python"


def run(python: Path, program: str, *arguments: str) -> bytes:
    """Return what a program of `sdks/` prints."""
    command = [python, INTEROP_FOLDER / "sdks" / program, *arguments]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:].decode()
    return done.stdout


def test_the_signatures_that_ours_are_compared_with_are_botocores(python: Path) -> None:
    assert json.loads(run(python, "signatures.py")) == json.loads(
        SIGNATURES.read_text(encoding="utf-8")
    )


@pytest.mark.parametrize(
    "name", ["chat", "responses", "anthropic", "google", "interactions", "bedrock"]
)
async def test_the_servers_of_our_tests_speak_as_the_services_do(python: Path, name: str) -> None:
    """The services' own libraries are served by them,
    and read of each answer what our adapters read.
    """
    calls = (
        Call("read", '{"path": "a"}', "call_1"),
        Call("read", '{"path": "größe 漢字"}', "call_2"),
    )
    answer = Answer(
        text="Größe, read in pieces.", deltas=4, calls=calls, counts=Counts(input=100, output=20)
    )
    with serving([answer]) as server:
        said = json.loads(run(python, "clients.py", name, server.url.removesuffix("/v1")))
        model = ADAPTER_ROWS[name].open(server.url)
        got = await send_request(model, tools=(ToolSpec("read", "Read.", SCHEMA),))
        await model.aclose()
    ours = [[each[0], each[1], json.loads(each[2])] for each in got.ready]
    assert (said["text"], said["calls"]) == (got.text, ours)
    assert (said["input"], said["output"]) == (got.end.tokens.input, got.end.tokens.output)


TURNS: tuple[ModelMessage, ...] = (
    UserModelMessage((TextPiece("Look"),)),
    AssistantModelMessage(
        (TextPiece("I read."), CallPiece("c1", "read", '{"path":"a"}')), "another/model"
    ),
    ToolModelMessage((ResultPiece("c1", "read", "größe 漢字"),)),
    UserModelMessage((TextPiece("Go on"),)),
)
DIFFERENCES: dict[str, dict[str, str]] = {
    "chat": {},
    "responses": {},
    "anthropic": {},
    "google": {
        "tools.0.functionDeclarations.0.parameters.type": "types are written in capitals, or as JSON Schema has them",
        "tools.0.functionDeclarations.0.parameters.properties.path.type": "the same",
        "systemInstruction.role": "the library gives the instruction a role, which the service does not read",
        "contents.1.parts.1.thoughtSignature": "a call of another model has none: this word stands for it",
        "generationConfig.thinkingConfig.includeThoughts": "the service reads fields in either spelling",
        "generationConfig.thinkingConfig.include_thoughts": "the same",
    },
    "interactions": {},
    "bedrock": {},
}
"""By protocol: the places of a body where ours is another one than the library's,
each with the reason.
"""


def flatten(value: Any, place: str = "") -> dict[str, Any]:
    """Return the strings of a JSON value by their place, such as `messages.0.role`."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    found = {
        name: each
        for key, held in inner
        for name, each in flatten(held, f"{place}.{key}".lstrip(".")).items()
    }
    return found or {place: value}


@pytest.mark.parametrize("name", list(DIFFERENCES))
async def test_a_conversation_is_sent_as_the_services_own_library_sends_it(
    python: Path, name: str
) -> None:
    """The same conversation and tools by both: what differs in path or body
    is explained by the table.
    """
    with serving([Answer(text="ok")]) as server:
        run(python, "bodies.py", name, server.url.removesuffix("/v1"))
        model = ADAPTER_ROWS[name].open(server.url)
        request = ModelRequest(
            system="Be brief.",
            messages=TURNS,
            tools=(ToolSpec("read", "Read.", SCHEMA),),
            max_tokens=500,
        )
        async with aclosing(model.stream(request)) as events:
            assert [event async for event in events][-1].error is None
        await model.aclose()
        theirs, ours = server.requests
    assert ours.path == theirs.path
    one, other = flatten(ours.json), flatten(theirs.json)
    missing = object()
    differing = {
        place for place in one | other if one.get(place, missing) != other.get(place, missing)
    }
    assert differing == DIFFERENCES[name].keys(), {
        place: (one.get(place), other.get(place)) for place in differing
    }
