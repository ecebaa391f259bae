"""Tests of tool schemas in the forms that vendors accept."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.model.chat import ModelInfo
from codeloop.model.quirks import (
    ANTHROPIC_QUIRKS,
    COMPATIBLE_QUIRKS,
    CONSTRAINT_KEYWORDS,
    OPENAI_QUIRKS,
    QUIRKS_BY_PROVIDER,
    find_quirks,
)
from codeloop.model.wire.tool_schema import adapt_parameters
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


def test_the_schema_itself_is_not_touched() -> None:
    before = repr(SCHEMA)
    adapt_parameters(SCHEMA, OPENAI_QUIRKS.refused_keywords)
    assert repr(SCHEMA) == before


def test_a_property_that_is_named_like_a_keyword_stays() -> None:
    properties = {name: {"type": "string"} for name in ("pattern", "default", "format", "minimum")}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    assert (
        adapt_parameters(schema, OPENAI_QUIRKS.refused_keywords)["properties"].keys()
        == properties.keys()
    )


def test_a_vendor_that_refuses_nothing_gets_the_schema_itself() -> None:
    assert adapt_parameters(SCHEMA, ANTHROPIC_QUIRKS.refused_keywords) is SCHEMA


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


@pytest.mark.parametrize("name", QUIRKS_BY_PROVIDER)
def test_no_row_sends_what_it_refuses_and_all_else_is_kept(name: str) -> None:
    refused = QUIRKS_BY_PROVIDER[name].refused_keywords
    assert keywords(adapt_parameters(SCHEMA, refused)) == keywords(SCHEMA) - refused


def test_unknown_services_are_not_sent_additional_properties() -> None:
    for info in (
        ModelInfo(provider_id="acme", id="m", name="M"),
        ModelInfo(provider_id="acme", id="m", name="M", npm="@ai-sdk/openai"),
    ):
        given = adapt_parameters(SCHEMA, find_quirks(info).refused_keywords)
        assert "additionalProperties" not in keywords(given)
        assert keywords(given) & CONSTRAINT_KEYWORDS


KINDS = st.recursive(
    st.sampled_from(
        [{"type": "string", "pattern": "a"}, {"type": "integer", "minimum": 0}, {"enum": ["x"]}]
    ),
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(
            lambda members, needed: {
                "type": "object",
                "properties": members,
                "required": sorted(members)[:needed],
            },
            st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
            st.integers(0, 3),
        ),
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(KINDS)
def test_whatever_the_schema_nothing_refused_is_left_and_the_result_is_stable(inner: JSON) -> None:
    schema: JSON = {"type": "object", "properties": {"inner": inner}}
    given = adapt_parameters(schema, OPENAI_QUIRKS.refused_keywords)
    assert not keywords(given) & OPENAI_QUIRKS.refused_keywords
    assert adapt_parameters(given, OPENAI_QUIRKS.refused_keywords) == given
    assert adapt_parameters(schema, COMPATIBLE_QUIRKS.refused_keywords) == schema
