"""Servers whose messages are not quite of the protocol's form: what can be used is used."""

import json
from pathlib import Path
from typing import Any

import pytest

from codeloop.extend.mcp.transport.repair_messages import repair_body
from codeloop.tool.tool import ToolFailure
from tests.extend.mcp.world import plain, world

RESULT = '{"jsonrpc": "2.0", "id": ID, "result": %s}'
ONE = '{"content": [{"type": "text", "text": "one"}%s]}'

UNDERSTOOD = {
    "half a character": (RESULT % r'{"content": [{"type": "text", "text": "a\ud83d"}]}', "a\ufffd"),
    "whole characters": (RESULT % ONE % r', {"type": "text", "text": "\ud83d\ude00"}', "one\n😀"),
    "bytes": (RESULT % '{"content": [{"type": "text", "text": "aBYTE"}]}', "a\ufffd"),
    "a control character": (RESULT % '{"content": [{"type": "text", "text": "a\x01"}]}', "a\x01"),
    "no version": ('{"id": ID, "result": %s}' % (ONE % ""), "one"),
    "an empty error": ('{"jsonrpc": "2.0", "id": ID, "error": null, "result": %s}' % (ONE % ""), "one"),
    "a text of null": (RESULT % ONE % ', {"type": "text", "text": null}', "one"),
    "no kind": (RESULT % ONE % ', {"text": "two"}', "one\ntwo"),
    "an unknown kind": (RESULT % ONE % ', {"type": "hologram", "x": 3}', '"hologram","x":3'),
    "a number": (RESULT % ONE % ", 7", "7"),
    "a text": (RESULT % ONE % ', "two"', "one\ntwo"),
    "odd annotations": (RESULT % ONE % ', {"type": "text", "text": "two", "annotations": 3}', "one\ntwo"),
    "a link without a name": (RESULT % ONE % ', {"type": "resource_link", "uri": "x:y"}', "resource x:y"),
    "a resource without an address": (
        RESULT % ONE % ', {"type": "resource", "resource": {"text": "two", "blob": null}}',
        "one\ntwo",
    ),
    "content that is a text": (RESULT % '{"content": "one"}', "one"),
    "content that is one block": (RESULT % '{"content": {"type": "text", "text": "one"}}', "one"),
    "no content": (RESULT % '{"structuredContent": {"rows": [1, 2]}}', '"rows"'),
    "content of null": (RESULT % '{"content": null}', "(no output)"),
    "a structured list": (RESULT % '{"content": [], "structuredContent": [1, 2]}', "1,"),
    "isError of null": (RESULT % '{"content": [{"type": "text", "text": "one"}], "isError": null}', "one"),
}  # fmt: skip
REFUSED = {
    "a text": (RESULT % '"text"', 'its result is no object: "text"'),
    "a list": (RESULT % "[1]", "its result is no object: [1]"),
    "nothing": ('{"jsonrpc": "2.0", "id": ID}', "its result is no object: null"),
    "an error that is a text": ('{"jsonrpc": "2.0", "id": ID, "error": "it broke"}', "it broke"),
    "an error with a text as code": (
        '{"jsonrpc": "2.0", "id": ID, "error": {"code": "E1", "message": "it broke"}}',
        "it broke",
    ),
    "an error of nothing": (
        '{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "it broke"}}',
        "it broke",
    ),
    "broken JSON": ('{"jsonrpc": "2.0", "id": ID, "result": {"content": [', "it is not JSON"),
}


@pytest.mark.parametrize(("line", "output"), UNDERSTOOD.values(), ids=UNDERSTOOD)
async def test_what_can_be_understood_of_an_answer_is_used(
    tmp_path: Path, line: str, output: str
) -> None:
    async with world(tmp_path, {"p": plain(tmp_path, timeout=60_000)}) as it:
        assert output in (await it.call("raw", line=line)).output


@pytest.mark.parametrize(("line", "reason"), REFUSED.values(), ids=REFUSED)
async def test_an_answer_that_cant_be_read_ends_its_call(
    tmp_path: Path, line: str, reason: str
) -> None:
    # A call that waited for its time limit would fail with another text.
    async with world(tmp_path, {"p": plain(tmp_path, timeout=60_000)}) as it:
        with pytest.raises(ToolFailure) as failed:
            await it.call("raw", line=line)
        assert reason in str(failed.value)
        assert (await it.call("echo", text="on")).output == "echo: on"


STRUCTURED = {
    "beside a short text": ([{"type": "text", "text": "listed"}], {"rows": [1]}, True),
    "as text": ([{"type": "text", "text": '{"rows": [1]}'}], {"rows": [1]}, False),
    "a wrapped text": ([{"type": "text", "text": "abc"}], {"result": "abc"}, False),
    "an item each": ([{"type": "text", "text": "1"}, {"type": "text", "text": '{"a":2}'}],
                     {"result": [1, {"a": 2}]}, False),
    "less as text": ([{"type": "text", "text": '{"rows": []}'}], {"rows": [1]}, True),
}  # fmt: skip


@pytest.mark.parametrize(("content", "structured", "is_shown"), STRUCTURED.values(), ids=STRUCTURED)
async def test_structured_content_is_shown_once(
    tmp_path: Path, content: list[Any], structured: Any, is_shown: bool
) -> None:
    async with world(tmp_path, {"p": plain(tmp_path, timeout=60_000)}) as it:
        answer = {"content": content, "structuredContent": structured}
        result = await it.call("raw", line=RESULT % json.dumps(answer))
        texts = "\n".join(block["text"] for block in content)
        assert result.output.startswith(texts)
        assert (len(result.output) > len(texts)) == is_shown
        assert result.metadata["structured"] == structured


USABLE: list[dict[str, Any]] = [
    {"inputSchema": {"oneOf": [{"type": "object"}]}},
    {"inputSchema": {"type": ["object", "null"]}},
    {"inputSchema": {}},
    {"inputSchema": None},
    {"inputSchema": {"type": "object", "properties": None, "required": None}},
    {"inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}},
    {"inputSchema": {"type": "object"}, "outputSchema": {"anyOf": []}},
    {"inputSchema": {"type": "object"}, "execution": {"taskSupport": "other"}},
    {"inputSchema": {"type": "object"}, "title": 7, "description": None},
    {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "yes"}},
    {},
]
USELESS: list[Any] = [
    {"name": "list", "inputSchema": {"type": "array"}},
    {"name": "texts", "inputSchema": "none"},
    {"name": "odd", "inputSchema": {"type": "object", "properties": ["a"]}},
    {"description": "nameless", "inputSchema": {"type": "object"}},
    7,
]


async def test_a_tool_that_is_not_of_the_form_is_used_or_left_out_by_name(tmp_path: Path) -> None:
    definition = plain(tmp_path)
    tools = [{"name": f"odd_{number}", **each} for number, each in enumerate(USABLE)]
    (tmp_path / "traces" / "tools.json").write_text(json.dumps([*tools, *USELESS]))
    async with world(tmp_path, {"p": definition}) as it:
        await it.server().connect()
        listing = it.server().listing
        assert listing is not None
        names = {tool.name for tool in listing.tools}
        assert {f"odd_{number}" for number in range(len(USABLE))} <= names
        assert {"echo", "blocks"} <= names
        assert all(tool.schema["type"] == "object" for tool in listing.tools)
        problems = "\n".join(listing.problems)
        for name in ("tool list", "tool texts", "tool odd", "tool number "):
            assert f"its {name}" in problems
        assert not {"list", "texts", "odd"} & names


BODIES = {
    "half a character": (
        rb'{"jsonrpc": "2.0", "id": 1, "result": {"x": "\ud83d"}}',
        {"jsonrpc": "2.0", "id": 1, "result": {"x": "\ufffd"}},
    ),
    "a text as error": (
        b'{"jsonrpc": "2.0", "id": 1, "error": "no"}',
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32700, "message": "no"}},
    ),
}
LOG_LINES = [
    b'{"level":30,"id":3,"msg":"listening"}',
    b'{"level":50,"id":3,"msg":"no route","error":"ENOENT"}',
    b'{"id":3,"method":"GET","url":"/x"}',
    b'{"id":3}',
    b'{"id":3,"level":30,"msg":"cut off',
]
UNTOUCHED = [
    *LOG_LINES,
    b'{"error": "invalid_grant"}',
    b"/messages?id=1",
    b"",
    b"{",
    b'{"issuer": "x"}',
]


@pytest.mark.parametrize(("body", "message"), BODIES.values(), ids=BODIES)
def test_messages_in_http_bodies_are_repaired(body: bytes, message: Any) -> None:
    assert json.loads(repair_body(body)) == message


@pytest.mark.parametrize("body", UNTOUCHED)
def test_other_http_bodies_stay_as_they_are(body: bytes) -> None:
    assert repair_body(body) == body


@pytest.mark.parametrize("line", LOG_LINES)
async def test_a_line_of_a_log_with_an_id_answers_no_request(tmp_path: Path, line: bytes) -> None:
    async with world(tmp_path, {"p": plain(tmp_path, timeout=60_000)}) as it:
        # The log's number is that of the request that waits.
        logged = line.decode().replace('"id":3', '"id":ID')
        answer = RESULT % '{"content": "one"}'
        assert (await it.call("raw", line=f"{logged}\n{answer}")).output == "one"


NAMES = ["uids[]", "$filter", "x/y", "with space", "n" * 70, "größe", "n" * 70 + "2", "x_y", "ok"]


async def test_names_of_properties_are_mapped_there_and_back(tmp_path: Path) -> None:
    definition = plain(tmp_path)
    schema = {
        "type": "object",
        "properties": {
            **{name: {"type": "integer"} for name in NAMES},
            "inner": {"type": "array", "items": {"properties": {"a b": {"type": "string"}}}},
        },
        "required": ["$filter", "ok"],
    }
    (tmp_path / "traces" / "tools.json").write_text(
        json.dumps([{"name": "odd", "inputSchema": schema}])
    )
    async with world(tmp_path, {"p": definition}) as it:
        await it.server().connect()
        it.table.__dict__.pop("cached_listings", None)
        toolbox = it.toolbox
        spec = toolbox.tools_by_name["p_odd"].spec
        told = [name for name in spec.parameters["properties"] if name != "inner"]
        assert len(told) == len(NAMES)
        assert all(name.isascii() and len(name) <= 64 for name in told)
        assert set(spec.parameters["required"]) <= set(told)
        given = {name: str(number) for number, name in enumerate(told)}
        prepared = toolbox.prepare("p_odd", json.dumps({**given, "inner": [{"a_b": "x"}]}))
        expected = {name: number for number, name in enumerate(NAMES)}
        assert prepared.input == {**expected, "inner": [{"a b": "x"}]}


OWN_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "user id": {"type": "string"},
        "data": {"type": "object"},
        "any": {},
        "row": {"$ref": "#/$defs/row"},
        "kind": {"enum": ["user id"], "default": {"user id": 1}},
        "map": {"additionalProperties": {"$ref": "#/$defs/row"}},
        "either": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/row"}]},
        "properties": {"type": "object", "properties": {"$ref": {"type": "string"}}},
    },
    "required": ["user id"],
    "$defs": {
        "row": {
            "allOf": [{"properties": {"user id": {"type": "integer"}}}],
            "properties": {"next": {"$ref": "#/$defs/row"}},
        }
    },
}


async def test_properties_are_renamed_where_the_schema_has_them_and_nowhere_else(
    tmp_path: Path,
) -> None:
    definition = plain(tmp_path)
    (tmp_path / "traces" / "tools.json").write_text(
        json.dumps([{"name": "odd", "inputSchema": OWN_SCHEMA}])
    )
    async with world(tmp_path, {"p": definition}) as it:
        await it.server().connect()
        it.table.__dict__.pop("cached_listings", None)
        toolbox = it.toolbox
        told = toolbox.tools_by_name["p_odd"].spec.parameters
        assert set(told["properties"]) == (set(OWN_SCHEMA["properties"]) - {"user id"}) | {
            "user_id"
        }
        assert told["required"] == ["user_id"]
        properties = told["properties"]
        assert properties["row"] == {"$ref": "#/$defs/row"}
        assert properties["kind"] == {"enum": ["user id"], "default": {"user id": 1}}
        assert list(properties["properties"]["properties"]) == ["ref"]
        assert list(told["$defs"]["row"]["allOf"][0]["properties"]) == ["user_id"]
        sent: dict[str, Any] = {
            "data": {"user_id": 7, "ref": 1},
            "any": [{"user_id": 7}],
            "kind": {"user_id": 1},
        }
        given = {
            **sent,
            "user_id": "1",
            "row": {"user_id": 2, "next": {"user_id": 3, "data": {"user_id": 4}}},
            "map": {"user_id": {"user_id": 5}},
            "either": {"user_id": 6},
            "properties": {"ref": "x", "user_id": 8},
        }
        prepared = toolbox.prepare("p_odd", json.dumps(given))
        assert prepared.input == {
            **sent,
            "user id": "1",
            "row": {"user id": 2, "next": {"user id": 3, "data": {"user_id": 4}}},
            "map": {"user_id": {"user id": 5}},
            "either": {"user id": 6},
            "properties": {"$ref": "x", "user_id": 8},
        }
