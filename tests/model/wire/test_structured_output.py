"""Tests of request fields for an answer of a schema:
the service's own format, else a forced tool call.
"""

from pathlib import Path
from typing import Any

import pytest

from codeloop.model.chat import ModelInfo, ToolSpec
from codeloop.model.quirks import ANTHROPIC_QUIRKS, COMPATIBLE_QUIRKS, OPENAI_QUIRKS, find_quirks
from codeloop.model.wire.structured_output import (
    make_answer_shape,
    make_forced_call_fields,
    make_format_fields,
)
from codeloop.schema.part import STRUCTURED_OUTPUT_TOOL
from codeloop.schema.wire import JSON
from tests.cli.program import KEY, Desk, call, serving
from tests.support.answers import Answer
from tests.support.model_server import ModelServer

GPT = ModelInfo(provider_id="openai", id="gpt-6", name="GPT", npm="@ai-sdk/openai")
CLAUDE = ModelInfo(
    provider_id="anthropic", id="claude-opus-5", name="Claude", npm="@ai-sdk/anthropic"
)
TEXT: JSON = {"type": "string"}
TOOL = ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": TEXT}})


def closed(**properties: Any) -> JSON:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def openai_schema(schema: JSON) -> tuple[Any, bool]:
    fields = make_format_fields(GPT, OPENAI_QUIRKS, make_answer_shape(schema))
    assert fields is not None
    described = fields["response_format"]["json_schema"]
    return described["schema"], described["strict"]


def anthropic_schema(schema: JSON) -> Any:
    fields = make_format_fields(CLAUDE, ANTHROPIC_QUIRKS, make_answer_shape(schema))
    return fields and fields["output_config"]["format"]["schema"]


NODE = closed(next={"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]})
BOTH: list[tuple[JSON, JSON]] = [
    (closed(a=TEXT), closed(a=TEXT)),
    ({"properties": {"a": TEXT}, "required": ["a"]}, closed(a=TEXT)),
    ({**closed(a=TEXT), "$schema": "https://json-schema.org/draft/2020-12/schema"}, closed(a=TEXT)),
    (closed(a={**TEXT, "default": "x", "examples": ["y"]}), closed(a=TEXT)),
    (closed(a={"enum": ["x", "y"]}), closed(a={"enum": ["x", "y"], "type": "string"})),
    (closed(a={"const": 1}), closed(a={"const": 1, "type": "integer"})),
    (closed(a={"type": ["string", "null"]}), closed(a={"type": ["string", "null"]})),
    (
        closed(a={"type": "array", "items": {"properties": {}}}),
        closed(a={"type": "array", "items": closed()}),
    ),
    ({"type": "array", "items": TEXT}, closed(result={"type": "array", "items": TEXT})),
    ({"enum": ["x"]}, closed(result={"enum": ["x"], "type": "string"})),
    (
        {"$ref": "#/$defs/a", "$defs": {"a": closed(b={"$ref": "#/$defs/c"}), "c": TEXT}},
        {
            **closed(b={"$ref": "#/$defs/c"}),
            "$defs": {"a": closed(b={"$ref": "#/$defs/c"}), "c": TEXT},
        },
    ),
    (closed(title=TEXT, type=TEXT, format=TEXT), closed(title=TEXT, type=TEXT, format=TEXT)),
]


@pytest.mark.parametrize(("schema", "sent"), BOTH)
def test_what_both_services_keep_to_is_sent_with_closed_objects(schema: JSON, sent: JSON) -> None:
    assert openai_schema(schema) == (sent, True)
    assert anthropic_schema(schema) == sent


@pytest.mark.parametrize(
    ("schema", "openai", "anthropic"),
    [
        ({"type": "object", "properties": {"a": TEXT}}, False, True),  # may be left out
        (closed(a={"type": "integer", "minimum": 1}), True, False),
        (closed(a={"type": "string", "pattern": "^a"}), True, False),
        (closed(a={"type": "array", "items": TEXT, "minItems": 1}), True, False),
        ({**NODE, "$defs": {"node": NODE}}, True, False),  # it holds itself
        (closed(a={"$ref": "#"}), True, False),
        (closed(a={"type": "string", "minLength": 1}), False, False),
        (closed(a={"type": "string", "format": "iri"}), False, False),
        (closed(a={"type": "object"}), False, False),
        (closed(a={"type": "array"}), False, False),
        (closed(a={}), False, False),
        (closed(a=True), False, False),
        (closed(a={"enum": ["x", 1]}), False, False),
        ({**closed(a=TEXT), "additionalProperties": TEXT}, False, False),
        (closed(a={"allOf": [TEXT]}), False, False),
        (closed(a={"oneOf": [TEXT]}), False, False),
        ({**closed(a=TEXT), "patternProperties": {"^b": TEXT}}, False, False),
        ({}, False, False),
    ],
)
def test_other_schemas_are_advice_or_go_to_the_tool(
    schema: JSON, openai: bool, anthropic: bool
) -> None:
    sent, strict = openai_schema(schema)
    assert strict is openai
    assert strict or sent == make_answer_shape(schema).schema
    assert (anthropic_schema(schema) is not None) is anthropic


def test_references_to_the_top_follow_it_into_the_result() -> None:
    tree = {"anyOf": [TEXT, {"type": "array", "items": {"$ref": "#"}}]}
    inner = make_answer_shape(tree).schema["properties"]["result"]
    assert inner["anyOf"][1]["items"] == {"$ref": "#/properties/result"}
    assert make_answer_shape(tree).unwrap({"result": ["a"]}) == ["a"]
    assert make_answer_shape(tree).unwrap(["a"]) == ["a"]


def test_models_and_services_without_a_format_get_the_tool() -> None:
    shape = make_answer_shape(closed(a=TEXT))
    for provider, model in (
        ("openai", "gpt-4"),
        ("anthropic", "claude-3-5-haiku"),
        ("groq", "x"),
        ("somebody", "m"),
    ):
        info = ModelInfo(provider_id=provider, id=model, name="M")
        assert make_format_fields(info, find_quirks(info), shape) is None, model
    assert make_format_fields(GPT, find_quirks(GPT), shape)
    assert make_format_fields(CLAUDE, find_quirks(CLAUDE), shape)


def test_a_call_is_forced_where_that_can_be_said() -> None:
    assert make_forced_call_fields(GPT, OPENAI_QUIRKS, {}) == {"tool_choice": "required"}
    assert make_forced_call_fields(CLAUDE, ANTHROPIC_QUIRKS, {}) == {"tool_choice": {"type": "any"}}
    assert (
        make_forced_call_fields(CLAUDE, ANTHROPIC_QUIRKS, {"thinking": {"type": "adaptive"}}) == {}
    )
    assert make_forced_call_fields(GPT, COMPATIBLE_QUIRKS, {"toolChoice": "auto"}) == {}
    deepseek = ModelInfo(provider_id="deepseek", id="d", name="D")
    assert make_forced_call_fields(deepseek, find_quirks(deepseek), {}) == {}


async def test_the_bodies_are_exactly_these(openai: Any, anthropic: Any, asking: Any) -> None:
    shape = make_answer_shape({"properties": {"a": TEXT}, "required": ["a"]})
    async with ModelServer([Answer(text='{"a":"b"}')] * 2) as server:
        await asking(
            openai(server, info=GPT),
            tools=(TOOL,),
            body=make_format_fields(GPT, OPENAI_QUIRKS, shape),
        )
        effort = {"output_config": {"effort": "low"}}
        await asking(
            anthropic(server, info=CLAUDE),
            options=effort,
            body=make_format_fields(CLAUDE, ANTHROPIC_QUIRKS, shape),
        )
        first, second = server.requests
    schema = '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],'
    said = f'"schema":{schema}"additionalProperties":false}}'
    head = '{"model":"gpt-6","stream":true,"stream_options":{"include_usage":true},'
    json_schema = f'{{"name":"{STRUCTURED_OUTPUT_TOOL}",{said},"strict":true}}'
    form = f'"response_format":{{"type":"json_schema","json_schema":{json_schema}}},"tools":['
    assert first.body.decode().startswith(head + form)
    config = f'"output_config":{{"effort":"low","format":{{"type":"json_schema",{said}}}}}'
    assert config in second.body.decode()


@pytest.mark.slow
def test_a_run_has_its_answer_from_the_service_itself_after_a_tool(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "schema.json").write_text('{"properties": {"a": {"type": "string"}}}')
    with serving(
        [call("glob", pattern="*"), Answer(text='{"a": "b"}'), Answer(text="T")]
    ) as server:
        options = {"baseURL": server.url, "apiKey": KEY}
        desk.configure(
            provider={"anthropic": {"options": options}},
            model="anthropic/claude-opus-5",
            title="off",
        )
        done = desk.run("run", "--title", "T", "--schema", "schema.json", "go")
        bodies = [request.json for request in server.requests]
    assert (done.returncode, done.stdout) == (0, '{"a":"b"}\n'), done.stderr
    assert [body["output_config"]["format"]["type"] for body in bodies] == ["json_schema"] * 2
    assert "StructuredOutput" not in [tool["name"] for tool in bodies[0]["tools"]]
