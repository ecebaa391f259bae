"""Tests of optional fields that a service refuses: found by its words, then left out."""

import json
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.chat import ModelInfo, RetryScheduled
from codeloop.model.protocols.anthropic.adapter import AnthropicMessages
from codeloop.model.protocols.chat_completions.adapter import ChatCompletionsModel
from codeloop.model.protocols.responses.adapter import ResponsesModel
from codeloop.model.quirks import OPENAI_QUIRKS, find_quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.known_refusals import KNOWN_DAYS
from codeloop.model.wire.refused_fields import find_refused_field
from codeloop.schema.errors import APIError, APIErrorData
from tests.support.answers import Answer
from tests.support.model_server import ModelServer
from tests.support.models import CollectedAnswer, send_request

HEAD: dict[str, Any] = {
    "model": "m1",
    "stream": True,
    "stream_options": {"include_usage": True},
    "temperature": 0.2,
    "top_p": 0.9,
    "max_tokens": 100,
    "prompt_cache_key": "ses_1",
    "parallel_tool_calls": True,
    "reasoning_effort": "high",
    "presence_penalty": 1,
    "store": False,
    "tool_choice": "required",
    "reasoning": {"summary": "auto"},
    "output_config": {"effort": "high"},
    "thinking": {"type": "adaptive"},
    "generationConfig": {"thinkingConfig": {"thinkingLevel": "high"}},
    "include": ["reasoning.encrypted_content"],
    "tools": [{"strict": False, "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    "messages": [{"role": "developer", "content": "s"}, {"phase": "commentary"}],
}
BODY = json.dumps(HEAD, separators=(",", ":")).encode()


def say(message: str, **fields: Any) -> str:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", **fields}})


FORMS = [
    # OpenAI, Azure
    ("stream_options", say("Unknown parameter: 'stream_options'.", param="stream_options")),
    ("stream_options", say("Unrecognized request argument supplied: stream_options", param=None)),
    ("stream_options.include_usage", say("Unknown parameter: 'stream_options.include_usage'.")),
    ("max_tokens", say("Unsupported parameter: 'max_tokens' is not supported with this model. "
                       "Use 'max_completion_tokens' instead.", param="max_tokens")),
    ("temperature", say("Unsupported value: 'temperature' does not support 0.2 with this model. "
                        "Only the default (1) value is supported.", param="temperature")),
    ("developer", say("Unsupported value: 'messages[0].role' does not support 'developer' "
                      "with this model.", param="messages[0].role")),
    ("store", say("Unknown parameter: 'store'.", param="store")),
    ("reasoning.summary", say("Your organization must be verified to generate reasoning summaries.")),
    # vLLM: pydantic, as a list and as its text; FastAPI
    ("stream_options", say("[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': "
                           "'Extra inputs are not permitted', 'input': {'include_usage': True}}]")),
    ("prompt_cache_key", json.dumps({"detail": [{"type": "extra_forbidden", "msg":
        "Extra inputs are not permitted", "loc": ["body", "prompt_cache_key"], "input": "s"}]})),
    # llama.cpp, LM Studio, Ollama and others in Go
    ("parallel_tool_calls", say("Unsupported param: parallel_tool_calls", code=500)),
    ("reasoning_effort", json.dumps({"error": "'reasoning_effort' is not supported by this model"})),
    ("stream_options", json.dumps({"error": 'json: unknown field "stream_options"'})),
    ("developer", say("Unexpected message role.")),
    ("developer", say("Input should be 'system', 'user', 'assistant' or 'tool', got 'developer'")),
    # Rust (serde) and Java (Jackson) list what they know
    ("stream_options", ("Failed to parse the JSON body: unknown field `stream_options`, expected "
      "one of `model`, `temperature`, `top_p`, `store`")),
    ("prompt_cache_key", ('Unrecognized field "prompt_cache_key" (class X), not marked as ignorable '
      '(3 known properties: "temperature", "top_p", "store")')),
    # JSON Schema validators
    ("store", json.dumps({"message": "Additional properties are not allowed ('store' was unexpected)"})),
    # LiteLLM, Groq, Cerebras, xAI, Mistral, Moonshot
    ("parallel_tool_calls", say("litellm.UnsupportedParamsError: openai does not support parameters: "
                                "['parallel_tool_calls'], for model=m1. To drop these, set drop_params")),
    ("stream_options", say("property 'stream_options' is unsupported")),
    ("presence_penalty", json.dumps({"code": "Client specified an invalid argument", "error":
        "Model m1 does not support parameter presencePenalty."})),
    ("reasoning_effort", json.dumps({"error": "Argument not supported on this model: reasoningEffort"})),
    ("temperature", say("invalid temperature: only 1 is allowed for this model")),
    ("tool_choice", say("deepseek-reasoner does not support this tool_choice")),
    ("parallel_tool_calls", say("Parallel tool calls are not supported by this model")),
    # Anthropic and services like it, Amazon, Google
    ("temperature", say("`temperature` is deprecated for this model.")),
    ("top_p", say("`top_p` and `temperature` cannot both be specified for this model.")),
    ("thinking", say("adaptive thinking is not supported on this model")),
    ("output_config.effort", say("This model does not support the effort parameter.")),
    ("cache_control.ttl", say("tools.0.cache_control.ephemeral.ttl: Extra inputs are not permitted")),
    ("cache_control", say("system.0.cache_control: Extra inputs are not permitted")),
    ("strict", say("tools.0.custom.strict: Extra inputs are not permitted")),
    ("phase", say("Unknown parameter: 'input[2].phase'.", param="input[2].phase")),
    ("parallel_tool_calls", json.dumps({"message": "extraneous key [parallel_tool_calls] is not permitted"})),
    ("generationConfig.thinkingConfig.thinkingLevel", json.dumps([{"error": {"code": 400, "message":
        "Invalid JSON payload received. Unknown name \"thinkingLevel\" at "
        "'generation_config.thinking_config': Cannot find field."}}])),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "said"), FORMS, ids=[f"{name}-{at}" for at, (name, _) in enumerate(FORMS)]
)
def test_services_name_a_field_in_many_ways(name: str, said: str) -> None:
    refused = find_refused_field(BODY, make_error(said))
    assert refused is not None
    assert refused.name == name


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (say("The data store is not available."), 400),
        (say("max_tokens is too large: 100."), 400),
        (say("tools.0.custom.input_schema: temperature is not supported here"), 400),
        (say("Unknown parameter: 'logit_bias'."), 400),
        (say("Unknown parameter: 'stream_options'."), 401),
        (say("This model does not support tools."), 400),
        (say("Invalid type for 'temperature': a number is wanted."), 400),
    ],
)
def test_other_refusals_name_no_field_of_the_request(said: str, status: int) -> None:
    assert find_refused_field(BODY, make_error(said, status)) is None


def make_error(said: str, status: int | None = 400) -> APIError:
    data = APIErrorData(message=said, is_retryable=False, status_code=status, response_body=said)
    return APIError(data=data)


def list_notes(answer: CollectedAnswer) -> list[str]:
    return [event.message for event in answer.events if isinstance(event, RetryScheduled)]


async def test_a_refused_field_is_left_out_told_once_and_remembered(tmp_path: Path) -> None:
    """Two fields in one request, one refused with 422, one inside of a stream with 200."""
    file = tmp_path / "cache" / "refused-fields"
    inside = say("Unsupported parameter: prompt_cache_key", code=400)
    answers = [
        Answer(status=422, body=say("Unknown parameter: 'stream_options'.")),
        Answer(events=(inside,)),
        Answer(text="ok"),
    ]
    info = ModelInfo(provider_id="acme", id="m1", name="M1", npm="@ai-sdk/openai")
    async with ModelServer(answers) as server:
        endpoint = Endpoint(server.url, known_refusals=file)

        async def ask(model_id: str = "m1") -> CollectedAnswer:
            named = ModelInfo(provider_id="acme", id=model_id, name="M", npm=info.npm)
            model = ChatCompletionsModel(named, endpoint, find_quirks(named))
            got = await send_request(model, session_id="ses_1")
            await model.aclose()
            return got

        first, later, other = await ask(), await ask(), await ask("m2")
        sent = [sorted(request.json) for request in server.requests]
    assert (first.text, later.text, other.text) == ("ok", "ok", "ok")
    assert [note.partition("From now on ")[2] for note in list_notes(first)] == [
        "requests for m1 go to 127.0.0.1 without `stream_options`. Token counts may be missing then.",
        "requests for m1 go to 127.0.0.1 without `prompt_cache_key`.",
    ]
    assert list_notes(later) == list_notes(other) == []
    whole = ["messages", "model", "prompt_cache_key", "stream", "stream_options"]
    bare = ["messages", "model", "stream"]
    assert sent == [whole, [n for n in whole if n != "stream_options"], bare, bare, whole]
    # After a month it is tried again.
    lines = [line.split("\t") for line in file.read_text().splitlines()]
    file.write_text("".join(f"{int(day) - KNOWN_DAYS - 1}\t{a}\t{n}\n" for day, a, n in lines))
    async with ModelServer([Answer(text="ok")], port=server.port) as server:
        await ask()
        assert sorted(server.requests[0].json) == whole


VALUE_REFUSALS = [
    ("Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model. "
     "Supported values are: 'low', 'medium' and 'high'."),
    "reasoning_effort 'xhigh' is not supported with this model",
    "reasoning_effort: unknown variant `xhigh`, expected one of `low`, `high`",
    "The value is not supported: reasoning_effort must be one of low, medium, high.",
]  # fmt: skip


@pytest.mark.parametrize("message", VALUE_REFUSALS)
async def test_a_refused_value_is_left_out_of_that_request_alone(
    tmp_path: Path, message: str
) -> None:
    """Another value of the same field is sent later, by the same process and by the next."""
    file = tmp_path / "refused-fields"
    info = ModelInfo(provider_id="acme", id="m1", name="M1")
    refusal = Answer(status=400, body=say(message, param="reasoning_effort"))
    answers = [refusal, Answer(text="ok"), refusal, Answer(text="ok"), Answer(text="ok")]
    async with ModelServer(answers) as server:
        model = ChatCompletionsModel(info, Endpoint(server.url, known_refusals=file))
        got = [
            await send_request(model, options={"reasoning_effort": effort}, session_id="ses_1")
            for effort in ("xhigh", "xhigh", "high")
        ]
        await model.aclose()
        sent = [request.json.get("reasoning_effort") for request in server.requests]
    assert [each.text for each in got] == ["ok", "ok", "ok"]
    assert sent == ["xhigh", None, "xhigh", None, "high"]
    note = "This request goes to 127.0.0.1 without `reasoning_effort`."
    assert [[each[-len(note) :] for each in list_notes(one)] for one in got] == [[note], [note], []]
    assert not file.exists()


def test_what_leaves_only_the_default_refuses_the_field() -> None:
    said = say("Unsupported value: 'temperature' does not support 0.2 with this model. "
               "Only the default (1) value is supported.")  # fmt: skip
    refused = find_refused_field(BODY, make_error(said))
    assert refused is not None
    assert not refused.is_value


async def test_an_object_never_goes_without_its_type() -> None:
    said = say("thinking.type: Extra inputs are not permitted")
    info = ModelInfo(provider_id="acme", id="m1", name="M1", npm="@ai-sdk/anthropic")
    body = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    async with ModelServer([Answer(status=400, body=said), Answer(text="ok")]) as server:
        model = AnthropicMessages(info, Endpoint(server.url))
        assert (await send_request(model, body=body)).text == "ok"
        await model.aclose()
        assert [request.json.get("thinking") for request in server.requests] == [
            body["thinking"],
            None,
        ]


@pytest.mark.parametrize("status", [500, 501, None])
@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Unexpected error during thinking", None),
        ("Thinking: unexpected error", None),
        ("The tool choice is not available at the moment.", None),
        ("Unexpected failure in phase 2, strict mode", None),
        ("Unsupported param: parallel_tool_calls", "parallel_tool_calls"),
        ("unknown field `stream_options`", "stream_options"),
        ("'thinking' is not supported", "thinking"),
        ("Unrecognized request argument supplied: top_p", "top_p"),
        ("Unexpected message role.", "developer"),
        ("Unknown parameter: 'tools[0].strict'.", "strict"),
    ],
)
def test_a_failure_refuses_only_a_field_that_it_names(
    said: str, name: str | None, status: int | None
) -> None:
    refused = find_refused_field(BODY, make_error(say(said), status))
    assert (refused and refused.name) == name


async def test_the_limit_of_an_answer_is_sent_in_the_other_field() -> None:
    said = say("Unsupported parameter: 'max_tokens' is not supported with this model.")
    info = ModelInfo(provider_id="acme", id="m1", name="M1", options={"maxTokens": 70})
    async with ModelServer([Answer(status=400, body=said), Answer(text="ok")]) as server:
        model = ChatCompletionsModel(info, Endpoint(server.url))
        assert (await send_request(model)).text == "ok"
        assert (await send_request(model, max_tokens=60)).text == "ok"
        await model.aclose()
        limits = [
            {name: value for name, value in request.json.items() if "tokens" in name}
            for request in server.requests
        ]
    assert limits == [
        {"max_tokens": 70},
        {"max_completion_tokens": 70},
        {"max_completion_tokens": 70},
    ]


async def test_marks_of_a_cache_are_left_out() -> None:
    said = say("system.0.cache_control: Extra inputs are not permitted")
    info = ModelInfo(provider_id="acme", id="m1", name="M1", npm="@ai-sdk/anthropic")
    async with ModelServer([Answer(status=400, body=said), Answer(text="ok")]) as server:
        model = AnthropicMessages(info, Endpoint(server.url))
        assert (await send_request(model)).text == "ok"
        await model.aclose()
        assert [b"cache_control" in request.body for request in server.requests] == [True, False]


async def test_a_refusal_that_stays_ends_the_request() -> None:
    said = say("Unknown parameter: 'store'.", param="store")
    info = ModelInfo(provider_id="acme", id="m1", name="M1")
    async with ModelServer([Answer(status=400, body=said)]) as server:
        model = ResponsesModel(info, Endpoint(server.url), OPENAI_QUIRKS)
        got = await send_request(model)
        await model.aclose()
        assert len(server.requests) == 2
    assert "Unknown parameter" in got.message
