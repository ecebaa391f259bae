"""Tests of requests to Gemini and Vertex AI: signatures with their parts,
Claude's version in the body.
"""

import json
from typing import Any

from codeloop.model.chat import (
    AssistantModelMessage,
    CallPiece,
    Finished,
    ModelInfo,
    ModelRequest,
    ReasoningPiece,
    ResultPiece,
    TextPiece,
    ToolModelMessage,
    UserModelMessage,
)
from codeloop.model.protocols.google.request import PLACEHOLDER_SIGNATURE, GoogleRequestEncoder
from codeloop.model.protocols.google_interactions.adapter import InteractionReader
from codeloop.model.quirks import GOOGLE_QUIRKS
from tests.support.adapter_rows import ADAPTER_ROWS, VERTEX_PATH
from tests.support.answers import Answer
from tests.support.model_server import ModelServer
from tests.support.models import HELLO, send_request

GEMINI = ModelInfo(provider_id="google", id="gemini-3.8-flash", name="G", reasoning=True)
CALLS = (CallPiece("c1", "read", "{}"), CallPiece("c2", "read", "{}"))
RESULTS = ToolModelMessage((ResultPiece("c1", "read", "one"), ResultPiece("c2", "read", "two")))


def parts_of(turn: AssistantModelMessage) -> list[dict[str, Any]]:
    request = ModelRequest(
        system="s", messages=(*HELLO, turn, RESULTS, UserModelMessage((TextPiece("go"),)))
    )
    return json.loads(GoogleRequestEncoder(GEMINI, GOOGLE_QUIRKS).encode(request))["contents"][1][
        "parts"
    ]


def test_a_signature_goes_back_with_its_part() -> None:
    of_text = ReasoningPiece("", {"google": {"signature": "dGV4dA==", "part": "text"}})
    of_call = ReasoningPiece(
        "", {"google": {"signature": "Y2FsbA==", "part": "call", "call": "c1"}}
    )
    parts = parts_of(
        AssistantModelMessage((TextPiece("I read."), of_text, of_call, *CALLS), GEMINI.ref)
    )
    assert parts[0] == {"text": "I read.", "thoughtSignature": "dGV4dA=="}
    assert [part.get("thoughtSignature") for part in parts[1:]] == ["Y2FsbA==", None]
    assert [part["functionCall"]["id"] for part in parts[1:]] == ["c1", "c2"]


def test_calls_of_another_model_are_marked_as_unsigned() -> None:
    parts = parts_of(
        AssistantModelMessage(
            (ReasoningPiece("hm", {"anthropic": {"signature": "x"}}), *CALLS), "anthropic/c"
        )
    )
    assert [part.get("thoughtSignature") for part in parts] == [PLACEHOLDER_SIGNATURE, None]


async def test_claude_on_vertex_has_its_version_in_the_body_and_its_name_in_the_path() -> None:
    row = ADAPTER_ROWS["vertex-claude"]
    async with ModelServer([Answer(text="ok")]) as server:
        model = row.open(server.url)
        got = await send_request(model)
        await model.aclose()
    assert got.text == "ok", got.message
    sent = server.requests[0]
    assert (
        sent.path == f"{VERTEX_PATH}/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict"
    )
    assert sent.json["anthropic_version"] == "vertex-2023-10-16"
    assert "model" not in sent.json
    assert "anthropic-version" not in sent.headers


def test_an_interaction_that_stops_at_the_services_own_limit_was_cut() -> None:
    reader = InteractionReader()
    step = b'{"type":"model_output","content":[{"type":"text","text":"One"}]}'
    reader.read_document(
        b'{"status":"requires_continuation","continuation_token":"t","steps":[' + step + b"]}"
    )
    end = reader.finish()[-1]
    assert isinstance(end, Finished)
    assert (end.reason, end.error) == ("length", None)
