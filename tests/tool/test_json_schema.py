"""Schemas of tool parameters as models read them."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.app.toolbox import make_toolbox
from codeloop.tool.json_schema import make_parameters_schema
from codeloop.tool.toolbox import AnyTool


class Inner(msgspec.Struct):
    """One line."""

    title: str
    default: int = 3


class Params(msgspec.Struct, rename="camel"):
    """What it takes."""

    file_path: Annotated[str, msgspec.Meta(description="The file")]
    kinds: list[Inner]
    mode: Literal["a", "b"] = "a"
    limit: Annotated[int, msgspec.Meta(gt=0)] | None = None
    other: int | str | None = None


class Empty(msgspec.Struct):
    """Nothing."""


def walk(node: Any) -> Any:
    yield node
    for value in (
        node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    ):
        yield from walk(value)


def test_a_struct_becomes_one_inlined_object() -> None:
    schema = make_parameters_schema(Params)
    assert schema["type"] == "object"
    assert schema["required"] == ["filePath", "kinds"]
    properties = schema["properties"]
    assert list(properties) == ["filePath", "kinds", "mode", "limit", "other"]
    assert properties["filePath"] == {"type": "string", "description": "The file"}
    assert properties["mode"] == {"enum": ["a", "b"]}
    assert properties["limit"] == {"type": "integer"}
    assert properties["other"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]


def test_a_parameter_may_be_named_like_a_word_of_the_schema() -> None:
    inner = make_parameters_schema(Params)["properties"]["kinds"]["items"]
    assert inner["properties"] == {"title": {"type": "string"}, "default": {"type": "integer"}}
    assert inner["required"] == ["title"]


def test_nothing_to_require_is_not_said() -> None:
    assert "required" not in make_parameters_schema(Empty)
    assert make_parameters_schema(Empty)["type"] == "object"


@pytest.mark.parametrize("tool", make_toolbox().tools, ids=lambda tool: tool.name)
def test_the_built_in_tools_have_schemas_without_references_and_noise(tool: AnyTool) -> None:
    schema = tool.spec.parameters
    assert schema["type"] == "object"
    for node in walk(schema):
        if isinstance(node, dict):
            assert "$ref" not in node
            assert "$defs" not in node
    assert b'"null"' not in msgspec.json.encode(schema)
    assert tool.description.strip()


@given(limit=st.one_of(st.none(), st.integers(1, 100)), mode=st.sampled_from(["a", "b"]))
def test_what_the_schema_allows_is_read(limit: int | None, mode: str) -> None:
    value: dict[str, Any] = {"filePath": "a", "kinds": [{"title": "t"}], "mode": mode}
    if limit is not None:
        value["limit"] = limit
    read = msgspec.convert(value, Params)
    assert (read.file_path, read.mode, read.limit) == ("a", mode, limit)
