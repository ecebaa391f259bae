"""Tool schemas as each vendor takes them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.model.chat import ModelInfo
from codeloop.model.quirks import ANTHROPIC, BOUNDS, COMPATIBLE, OPENAI, ROWS, quirks_of
from codeloop.model.wire.tool_schema import parameters_of
from codeloop.schema.wire import JSON

SCHEMA: JSON = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "description": "what"},
        "count": {"type": "integer", "exclusiveMinimum": 0},
        "mode": {"enum": ["a", "b"]},
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"old": {"type": "string"}, "all": {"type": "boolean"}},
                "required": ["old"],
                "additionalProperties": False,
            },
            "maxItems": 5,
        },
        "either": {"anyOf": [{"type": "string"}, {"type": "integer", "default": 1}]},
    },
    "required": ["pattern", "edits"],
}
STRICT: JSON = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "description": "what"},
        "count": {"type": ["integer", "null"]},
        "mode": {"enum": ["a", "b", None]},
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"old": {"type": "string"}, "all": {"type": ["boolean", "null"]}},
                "required": ["old", "all"],
                "additionalProperties": False,
            },
        },
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
    },
    "required": ["pattern", "count", "mode", "edits", "either"],
    "additionalProperties": False,
}


def test_a_strict_schema_requires_everything_and_lets_what_is_optional_be_null() -> None:
    before = repr(SCHEMA)
    assert parameters_of(SCHEMA, OPENAI) == (STRICT, True)
    assert repr(SCHEMA) == before, "the schema itself is not touched"


def test_a_property_that_is_named_like_a_keyword_stays() -> None:
    properties = {name: {"type": "string"} for name in ("pattern", "default", "format", "minimum")}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    assert parameters_of(schema, OPENAI)[0]["properties"].keys() == properties.keys()


@pytest.mark.parametrize(
    "open_part",
    [
        {"type": "object"},
        {},
        {"type": "array"},
        {"type": "object", "properties": {}, "additionalProperties": True},
        {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}, "properties": {}}},
        {"anyOf": [{"type": "object"}, {"type": "null"}]},
    ],
)
def test_a_schema_with_free_names_is_not_strict(open_part: JSON) -> None:
    schema: JSON = {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}, "b": open_part}}
    given, strict = parameters_of(schema, OPENAI)
    assert not strict
    assert given["properties"]["a"] == {"type": "string"}
    assert "required" not in given


def test_tools_without_parameters_can_be_strict() -> None:
    empty: JSON = {"type": "object", "properties": {}}
    assert parameters_of(empty, OPENAI) == ({**empty, "required": [], "additionalProperties": False}, True)


def test_a_vendor_that_refuses_nothing_gets_the_schema_itself() -> None:
    assert parameters_of(SCHEMA, ANTHROPIC)[0] is SCHEMA


def keywords(value: Any) -> set[str]:
    match value:
        case {"properties": properties, **rest}:
            inner = [keywords(member) for member in properties.values()]
            return {"properties"}.union(keywords(rest), *inner)
        case dict():
            return set(value).union(*(keywords(item) for item in value.values()))
        case list():
            return set[str]().union(*(keywords(item) for item in value))
        case _:
            return set()


@pytest.mark.parametrize("name", ROWS)
def test_no_row_sends_what_it_refuses_and_only_openai_itself_is_strict(name: str) -> None:
    given, strict = parameters_of(SCHEMA, ROWS[name])
    assert strict == (name == "openai")
    assert not keywords(given) & (ROWS[name].refused_keywords - ({"additionalProperties"} if strict else set()))


def test_unknown_services_are_not_sent_additional_properties() -> None:
    for info in (
        ModelInfo(provider_id="acme", id="m", name="M"),
        ModelInfo(provider_id="acme", id="m", name="M", npm="@ai-sdk/openai"),
    ):
        given, strict = parameters_of(SCHEMA, quirks_of(info))
        assert not strict
        assert "additionalProperties" not in keywords(given)
        assert keywords(given) & BOUNDS


KINDS = st.recursive(
    st.sampled_from([{"type": "string", "pattern": "a"}, {"type": "integer", "minimum": 0}, {"enum": ["x"]}]),
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(
            lambda members, needed: {"type": "object", "properties": members, "required": sorted(members)[:needed]},
            st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
            st.integers(0, 3),
        ),
    ),
    max_leaves=8,
)


@given(KINDS)
def test_whatever_the_schema_each_strict_object_is_closed_and_the_result_is_stable(schema: JSON) -> None:
    given, strict = parameters_of(schema, OPENAI)
    assert strict
    assert parameters_of(schema, OPENAI)[0] == given

    def check(node: Any) -> None:
        if "properties" in node:
            assert node["required"] == list(node["properties"])
            assert node["additionalProperties"] is False
        for inner in [*node.get("properties", {}).values(), *([node["items"]] if "items" in node else [])]:
            check(inner)

    check(given)
    assert parameters_of(schema, COMPATIBLE)[0] == schema
