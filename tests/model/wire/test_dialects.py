"""Tests of tool schemas in all protocols, against the rules by which services
refuse a whole request.
"""

from typing import Any

import pytest

from codeloop.app.toolbox import list_builtin_tools
from codeloop.model.chat import ToolSpec
from codeloop.model.wire.response_reader import read_tier
from tests.support.adapter_rows import ADAPTER_ROWS, AdapterRow, make_model_info
from tests.support.answers import Answer
from tests.support.model_server import ModelServer
from tests.support.models import send_request

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
OTHERS: dict[str, Schema] = {
    "nothing": {"type": "object"},
    "no_type": {"properties": {"a": TEXT}},
    "draft": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": TEXT},
    },
    "either": {
        "type": "object",
        "properties": {"id": TEXT},
        "oneOf": [
            {"properties": {"path": TEXT, "line": {"type": "integer"}}, "required": ["path"]},
            {"properties": {"url": {"type": "string", "format": "uri"}}, "required": ["url"]},
        ],
        "required": ["id"],
    },
    "both": {
        "allOf": [{"$ref": "#/$defs/a"}, {"properties": {"b": TEXT}}],
        "$defs": {"a": {"properties": {"a": TEXT}}},
    },
    "named": {
        "$ref": "#/definitions/Input",
        "definitions": {"Input": {"type": "object", "properties": {"q": TEXT}}},
    },
    "list": {
        "type": "object",
        "properties": {"rows": {"type": "array"}, "pair": {"type": "array", "items": [TEXT, TEXT]}},
    },
    "tree": {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/node", "description": "Where it begins."}},
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                    "value": TEXT,
                },
                "additionalProperties": False,
            }
        },
    },
    "union": {
        "type": "object",
        "properties": {
            "when": {
                "type": "string",
                "anyOf": [{"format": "date"}, {"enum": ["now"]}],
                "default": "now",
            },
            "size": {"type": ["integer", "null"], "exclusiveMinimum": 0},
            "mode": {"const": "fast"},
            "level": {"enum": [1, 2, 3]},
        },
        "required": ["when", "gone"],
    },
    "map": {
        "type": "object",
        "properties": {
            "environment": {
                "type": "object",
                "additionalProperties": TEXT,
                "propertyNames": {"pattern": "^A"},
            }
        },
        "patternProperties": {"^x-": TEXT},
        "additionalProperties": True,
        "if": {"required": ["environment"]},
        "then": {"required": ["environment"]},
    },
}
"""Parameters as servers of tools write them."""
TOOLS = (
    *(ToolSpec(name, "Does it.", schema) for name, schema in OTHERS.items()),
    *(tool.spec for tool in list_builtin_tools()),
)
EMPTY = [
    "nothing",
    *(tool.name for tool in list_builtin_tools() if not tool.parameters.get("properties")),
]
KIMI = AdapterRow(
    make_model_info("openai-chat", "moonshotai", "@ai-sdk/moonshotai", "kimi-k2.6"),
    "",
    "",
    signs=False,
)


def list_schemas(body: Schema) -> list[Schema]:
    """Return the schemas of a request's tools, whatever the protocol."""
    found: list[Schema] = []
    given: Any = body.get("tools") or body["toolConfig"]["tools"]
    for tool in given:
        match tool:
            case {"functionDeclarations": declarations}:
                found += [each["parameters"] for each in declarations if "parameters" in each]
            case {"function": {"parameters": schema}} | {
                "toolSpec": {"inputSchema": {"json": schema}}
            }:
                found.append(schema)
            case {"input_schema": schema} | {"parameters": schema}:
                found.append(schema)
            case _:
                assert tool.get("type") == "custom" or "cachePoint" in tool, tool
    return found


def list_nodes(schema: Any) -> list[Schema]:
    """Return a schema and all within it."""
    if not isinstance(schema, dict):
        return []
    inner = [
        *schema.get("properties", {}).values(),
        *schema.get("$defs", {}).values(),
        schema.get("items"),
    ]
    inner += [
        *schema.get("anyOf", []),
        *schema.get("oneOf", []),
        schema.get("additionalProperties"),
    ]
    return [schema, *(node for each in inner for node in list_nodes(each))]


async def send(row: AdapterRow) -> Schema:
    """Send all tools to a server that refuses what the service refuses;
    return the request's body.
    """
    async with ModelServer([Answer(text="ok")]) as server:
        model = row.open(server.url)
        got = await send_request(model, tools=TOOLS)
        await model.aclose()
    assert got.text == "ok", got.message
    return server.requests[0].json


@pytest.mark.parametrize("row", [*ADAPTER_ROWS.values(), KIMI], ids=[*ADAPTER_ROWS, "kimi"])
async def test_every_tool_is_told_as_the_service_takes_it(row: AdapterRow) -> None:
    body = await send(row)
    schemas = list_schemas(body)
    assert len(schemas) >= len(TOOLS) - len(EMPTY) - 1, (
        "but for those without parameters, and a patch by its grammar"
    )
    for schema in schemas:
        assert schema["type"] == "object"
        assert "properties" in schema
        assert not schema.keys() & {
            "anyOf",
            "oneOf",
            "allOf",
            "enum",
            "not",
            "if",
            "$ref",
            "$schema",
        }
        for node in list_nodes(schema):
            assert node.get("type") != "array" or "items" in node


async def test_a_union_at_the_top_becomes_properties_of_which_none_is_lost() -> None:
    body = await send(ADAPTER_ROWS["anthropic"])
    by_name = {tool["name"]: tool["input_schema"] for tool in body["tools"]}
    assert by_name["either"]["properties"].keys() == {"id", "path", "line", "url"}
    assert by_name["either"]["required"] == ["id"]
    assert by_name["both"]["properties"].keys() == {"a", "b"}
    assert by_name["named"]["properties"] == {"q": TEXT}
    assert by_name["no_type"] == {"type": "object", "properties": {"a": TEXT}}


async def test_moonshot_gets_references_alone_and_types_within_unions() -> None:
    body = await send(KIMI)
    nodes = [node for schema in list_schemas(body) for node in list_nodes(schema)]
    assert all(node.keys() == {"$ref"} for node in nodes if "$ref" in node)
    assert not any("type" in node for node in nodes if "anyOf" in node)
    assert all(isinstance(node["items"], dict) for node in nodes if "items" in node)
    (when,) = (tool for tool in body["tools"] if tool["function"]["name"] == "union")
    members = when["function"]["parameters"]["properties"]["when"]["anyOf"]
    assert [member["type"] for member in members] == ["string", "string"]


@pytest.mark.parametrize("value", [[], {}, 1, None, "priority "])
def test_a_tier_of_another_form_costs_what_the_standard_one_does(value: object) -> None:
    assert read_tier(value) == ""
