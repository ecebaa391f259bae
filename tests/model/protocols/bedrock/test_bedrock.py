"""Tests of requests to Bedrock's Converse: one message for the results of a turn,
and cache points.
"""

import json
from typing import Any

import pytest

from codeloop.model.chat import (
    AssistantModelMessage,
    CallPiece,
    ImagePiece,
    ModelInfo,
    ModelMessage,
    ModelRequest,
    ReasoningPiece,
    ResultPiece,
    TextPiece,
    ToolModelMessage,
    ToolSpec,
    UserModelMessage,
)
from codeloop.model.protocols.bedrock.adapter import BedrockConverse
from codeloop.model.protocols.bedrock.request import BedrockRequestEncoder
from codeloop.model.quirks import BEDROCK_QUIRKS
from codeloop.model.wire.endpoint import Endpoint
from tests.support.answers import Answer
from tests.support.model_server import ModelServer
from tests.support.models import send_request

TOOL = ToolSpec(
    "read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}
)
CLAUDE = "us.anthropic.claude-opus-5-5"


def info_of(name: str, **more: Any) -> ModelInfo:
    return ModelInfo(
        provider_id="amazon-bedrock",
        id=name,
        name=name,
        input=frozenset({"text", "image", "pdf"}),
        **more,
    )


def encode(name: str, *turns: ModelMessage, **more: Any) -> dict[str, Any]:
    request = ModelRequest(system="s", messages=turns, tools=(TOOL,), **more)
    return json.loads(BedrockRequestEncoder(info_of(name), BEDROCK_QUIRKS).encode(request))


def test_results_and_what_is_attached_to_them_stand_in_one_message() -> None:
    called = AssistantModelMessage(
        (CallPiece("c1", "read", "{}"), CallPiece("c2", "read", "{}")), f"amazon-bedrock/{CLAUDE}"
    )
    results = ToolModelMessage(
        (ResultPiece("c1", "read", "one"), ResultPiece("c2", "read", "no", error=True))
    )
    attached = UserModelMessage((TextPiece("Attached:"), ImagePiece("image/png", "aWk=")))
    _, answer, user = encode(
        CLAUDE, UserModelMessage((TextPiece("go"),)), called, results, attached
    )["messages"]
    assert [block["toolUse"]["toolUseId"] for block in answer["content"]] == ["c1", "c2"]
    first, second, text, image, point = user["content"]
    assert first["toolResult"] == {"toolUseId": "c1", "content": [{"text": "one"}]}
    assert second["toolResult"]["status"] == "error"
    assert text == {"text": "Attached:"}
    assert image == {"image": {"format": "png", "source": {"bytes": "aWk="}}}
    assert point == {"cachePoint": {"type": "default"}}


@pytest.mark.parametrize(
    ("name", "in_tools", "in_messages"),
    [
        (CLAUDE, True, True),
        ("anthropic.claude-3-haiku-20240307-v1:0", False, False),
        ("eu.amazon.nova-2-lite-v1:0", False, True),
        ("meta.llama4-maverick-17b-instruct-v1:0", False, False),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-5-5", True, True),
    ],
)
def test_cache_points_stand_where_the_model_takes_them(
    name: str, *, in_tools: bool, in_messages: bool
) -> None:
    body = encode(name, UserModelMessage((TextPiece("go"),)))
    assert ("cachePoint" in json.dumps(body["toolConfig"])) is in_tools
    assert ("cachePoint" in json.dumps(body["messages"])) is in_messages


def test_thinking_goes_back_unchanged_to_its_model_alone() -> None:
    thought = ReasoningPiece(" First.\n", {"bedrock": {"signature": "c2ln+/=="}})
    hidden = ReasoningPiece("", {"bedrock": {"redacted": "cmVk"}})
    answer = (thought, CallPiece("c1", "read", "{}"), hidden, TextPiece("So."))
    results = ToolModelMessage((ResultPiece("c1", "read", "one"),))
    own = encode(CLAUDE, AssistantModelMessage(answer, f"amazon-bedrock/{CLAUDE}"), results)[
        "messages"
    ][0]["content"]
    assert own[0] == {
        "reasoningContent": {"reasoningText": {"text": " First.\n", "signature": "c2ln+/=="}}
    }
    assert [next(iter(block)) for block in own] == [
        "reasoningContent",
        "toolUse",
        "reasoningContent",
        "text",
    ]
    assert own[2] == {"reasoningContent": {"redactedContent": "cmVk"}}
    other = encode(CLAUDE, AssistantModelMessage(answer, "anthropic/claude-opus-5-5"), results)[
        "messages"
    ][0]["content"]
    assert [next(iter(block)) for block in other] == ["toolUse", "text"]


@pytest.mark.parametrize(
    "name", [CLAUDE, "anthropic.claude-sonnet-4-5-v1:0", "arn:aws:bedrock:us-east-1:1:p/abc"]
)
async def test_a_models_name_stands_in_the_path_whatever_is_in_it(name: str) -> None:
    async with ModelServer([Answer(text="ok")]) as server:
        model = BedrockConverse(
            info_of(name), Endpoint(server.url.removesuffix("/v1"), key="k"), BEDROCK_QUIRKS
        )
        got = await send_request(model)
        await model.aclose()
    assert got.text == "ok", got.message
    plain = name.replace(":", "%3A").replace("/", "%2F")
    assert server.requests[0].path == f"/model/{plain}/converse-stream"
