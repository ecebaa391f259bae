"""Tests of tools that a service refuses: found by place or name, and left out from then on."""

import json
from typing import Any

import pytest

from codeloop.model.chat import ModelRequest, RetryScheduled, TextPiece, ToolSpec, UserModelMessage
from codeloop.model.wrappers.refused_tools import leave_out_tool
from codeloop.model.wrappers.retrying_model import RetryingModel
from codeloop.schema.errors import APIError, APIErrorData
from tests.support.answers import Answer
from tests.support.model_server import ModelServer

SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
TOOLS = (
    ToolSpec("read", "", SCHEMA),
    ToolSpec("docs_find", "", SCHEMA, origin="the MCP server docs"),
    ToolSpec("docs_add", "", SCHEMA, origin="the MCP server docs"),
)
REQUEST = ModelRequest(system="", messages=(UserModelMessage((TextPiece("go"),)),), tools=TOOLS)
NAMING = {
    "anthropic": "tools.1.custom.input_schema.properties: Property keys should match pattern",
    "anthropic's own": "tools.1.input_schema: JSON schema is invalid",
    "openai": "Invalid schema for function 'docs_find': None is not of type 'array'.",
    "openai's place": "Invalid 'tools[1].function.name': string does not match pattern.",
    "google": "* GenerateContentRequest.tools[0].function_declarations[1].parameters: wrong",
    "amazon": "The value at toolConfig.tools.2.member.toolSpec.inputSchema is invalid",
}


@pytest.mark.parametrize("message", NAMING.values(), ids=NAMING)
def test_services_name_a_tool_by_its_place_or_name(message: str) -> None:
    without = leave_out_tool(REQUEST, make_error(message))
    assert without is not None
    assert without.tool == TOOLS[1]
    assert without.request.tools == (TOOLS[0], TOOLS[2])
    assert "docs_find of the MCP server docs" in without.message


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("tools.0.custom.input_schema: wrong", 400),
        ("tools.7.custom.input_schema: wrong", 400),
        ("messages.3.content.0: wrong", 400),
        ("tools.1.custom.input_schema: wrong", 500),
        ("too many tools: 200", 400),
    ],
)
def test_only_tools_of_others_that_are_named_are_left_out(message: str, status: int) -> None:
    assert leave_out_tool(REQUEST, make_error(message, status)) is None


def make_error(message: str, status: int = 400) -> APIError:
    return APIError(data=APIErrorData(message=message, is_retryable=False, status_code=status))


async def test_a_request_is_sent_again_without_the_refused_tools(openai: Any) -> None:
    def refuse(place: int) -> Answer:
        message = f"Invalid 'tools[{place}].function.parameters': wrong"
        return Answer(status=400, body=json.dumps({"error": {"message": message}}))

    answers = [refuse(1), refuse(1), Answer(text="hi"), Answer(text="again")]
    async with ModelServer(answers) as server:
        model = RetryingModel(openai(server))
        events = [event async for event in model.stream(REQUEST)]
        later = [event async for event in model.stream(REQUEST)]
        sent = [
            [tool["function"]["name"] for tool in json.loads(request.body)["tools"]]
            for request in server.requests
        ]
    told = [event.message for event in events if isinstance(event, RetryScheduled)]
    assert [line.partition(" is left")[0] for line in told] == [
        "The tool docs_find of the MCP server docs",
        "The tool docs_add of the MCP server docs",
    ]
    assert not any(isinstance(event, RetryScheduled) for event in later)
    names = ["read", "docs_find", "docs_add"]
    assert sent == [names, ["read", "docs_add"], ["read"], ["read"]]
