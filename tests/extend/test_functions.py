import asyncio
import enum
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
import pytest

from codeloop.extend.functions import (
    FunctionResult,
    FunctionTool,
    UnsuitedFunction,
    WrongArguments,
    convert_result,
    make_function_tool,
)
from codeloop.extension import Context
from codeloop.kit.text.docstrings import read_docstring


class Place(TypedDict):
    city: str
    land: NotRequired[str]


@dataclass
class Point:
    """Where."""

    x: int
    y: int = 0


class Tree(msgspec.Struct):
    name: str
    below: list["Tree"] = []


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def called(
    function: Callable[..., Any], given: dict[str, Any], context: Any = None
) -> FunctionResult:
    return asyncio.run(make_function_tool(function).call(given, context))


def schema(function: Callable[..., Any]) -> dict[str, Any]:
    return make_function_tool(function).parameters["properties"]


def test_name_and_description_come_from_the_function() -> None:
    async def weather(city: str, days: int = 3) -> str:
        """Tell the weather.

        Args:
            city: Which one,
                in English.
            days (int): How many.

        Returns:
            A sentence.
        """
        return f"{city} {days}"

    made = make_function_tool(weather)
    assert (made.name, made.description) == (
        "weather",
        "Tell the weather.\n\nReturns:\n    A sentence.",
    )
    assert made.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Which one, in English."},
            "days": {"type": "integer", "description": "How many."},
        },
        "required": ["city"],
    }
    assert called(weather, {"city": "Oslo"}).output == "Oslo 3"
    assert called(weather, {"city": "Oslo", "days": "2"}).output == "Oslo 2"
    assert called(weather, {"city": "Oslo", "days": None}).output == "Oslo 3"
    other = make_function_tool(weather, name="forecast", description="Look ahead.")
    assert (other.name, other.description) == ("forecast", "Look ahead.")


PLACE = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "land": {"type": "string"}},
    "required": ["city"],
}
POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
    "required": ["x"],
}
TREE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "below": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["name"],
}


@pytest.mark.parametrize(
    ("hint", "described", "sent", "received"),
    [
        (str, {"type": "string"}, "a", "a"),
        (int, {"type": "integer"}, "3", 3),
        (float, {"type": "number"}, 1, 1.0),
        (bool, {"type": "boolean"}, "true", True),
        (Any, {}, {"a": [1]}, {"a": [1]}),
        (Literal["c", "f"], {"enum": ["c", "f"]}, "f", "f"),
        (str | None, {"type": "string"}, "a", "a"),
        (list[int], {"type": "array", "items": {"type": "integer"}}, [1, "2"], [1, 2]),
        (
            dict[str, int],
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"a": 1},
            {"a": 1},
        ),
        (Colour, {"enum": ["blue", "red"]}, "red", Colour.RED),
        (Path, {"type": "string"}, "/tmp/x", Path("/tmp/x")),
        (Annotated[str, "which"], {"type": "string", "description": "which"}, "a", "a"),
        (
            Annotated[int, msgspec.Meta(le=5, description="few")],
            {"type": "integer", "maximum": 5},
            5,
            5,
        ),
        (Place, PLACE, {"city": "Oslo"}, {"city": "Oslo"}),
        (Point, POINT, {"x": 1}, Point(1)),
        (list[Point], {"type": "array", "items": POINT}, [{"x": 1, "y": 2}], [Point(1, 2)]),
        (Tree, TREE, {"name": "a", "below": [{"name": "b"}]}, Tree("a", [Tree("b")])),
    ],
)
def test_annotations_describe_and_read_parameters(
    hint: Any, described: Any, sent: Any, received: Any
) -> None:
    got: list[Any] = []

    def take(value: Any) -> None:
        got.append(value)

    take.__annotations__["value"] = hint
    assert described.items() <= schema(take)["value"].items()
    called(take, {"value": sent})
    assert got == [received]


@pytest.mark.parametrize("sent", [5, ["x"], {"path": "x"}])
def test_a_path_that_is_no_text_is_refused_with_the_reason(sent: Any) -> None:
    def take(value: Path) -> None:
        raise AssertionError(value)

    with pytest.raises(WrongArguments, match=r"Expected `str`, got `\w+` - at `\$\.value`"):
        called(take, {"value": sent})


def test_pydantic_models_are_parameters() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Order", number=(int, ...), tags=(list[str], []))
    got: list[Any] = []

    def order(one: Any, more: Any = ()) -> Any:
        got.append((one, more))
        return one

    order.__annotations__ |= {"one": model, "more": list[model]}
    assert schema(order)["one"] == {
        "type": "object",
        "properties": {
            "number": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["number"],
    }
    result = called(order, {"one": {"number": 1}, "more": [{"number": "2"}]})
    assert got == [(model(number=1), [model(number=2)])]
    assert result.metadata["structured"] == {"number": 1, "tags": []}
    with pytest.raises(
        WrongArguments, match=r"valid integer.* at `\$\.more\.0\.number`\. It takes order\(one: \{"
    ):
        called(order, {"one": {"number": 1}, "more": [{"number": "x"}]})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "missing required field `city`"),
        ({"city": 3}, r"Expected `str`, got `int` - at `\$.city`"),
        ({"city": "a", "days": "soon"}, r"Expected `int`, got `str` - at `\$.days`"),
        ({"city": "a", "zip": 1}, "it has no parameter zip"),
    ],
)
def test_wrong_arguments_are_said_with_what_it_takes(given: dict[str, Any], said: str) -> None:
    def weather(city: str, days: int = 1) -> str:
        return f"{city}{days}"

    with pytest.raises(
        WrongArguments, match=f"{said}.*It takes weather\\(city: string, days\\?: integer\\)"
    ):
        called(weather, given)


def test_the_context_is_given_and_not_described() -> None:
    context: Any = object()

    def by_name(ctx: Any, word: str = "") -> bool:
        return ctx is context and not word

    async def by_type(word: str, *, around: Context) -> bool:
        return around is context and word == "a"

    assert list(schema(by_name)) == ["word"]
    assert list(schema(by_type)) == ["word"]
    assert called(by_name, {}, context).output == "true"
    assert called(by_type, {"word": "a"}, context).output == "true"


def test_a_plain_function_runs_beside_the_loop() -> None:
    async def main() -> bool:
        begun, end = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def block() -> str:
            loop.call_soon_threadsafe(begun.set)
            return str(end.wait(60))

        call = asyncio.create_task(make_function_tool(block).call({}))
        await begun.wait()
        end.set()
        return (await call).output == "True"

    assert asyncio.run(main())


def everything(*words: str) -> None: ...
def open_ended(**words: str) -> None: ...
def unnamed(word: str, /) -> None: ...
def of_functions(then: Callable[[], None]) -> None: ...
def unknown(value: Any) -> None: ...
def endless() -> Any:
    yield 1


unknown.__annotations__["value"] = "Missing"


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (everything, "takes .words: str without a name"),
        (open_ended, "without a name"),
        (unnamed, "takes word: str without a name"),
        (of_functions, "can't be described to a model: Callable"),
        (unknown, "annotations of unknown can't be read"),
        (endless, "endless yields"),
        (lambda: 1, "is not a valid tool name"),
    ],
)
def test_functions_that_no_model_can_call_say_what_to_change(function: Any, said: str) -> None:
    with pytest.raises(UnsuitedFunction, match=said):
        make_function_tool(function)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("text", FunctionResult("text")),
        (None, FunctionResult("")),
        (3, FunctionResult("3", metadata={"structured": 3})),
        (Point(1), FunctionResult('{\n  "x": 1,\n  "y": 0\n}', metadata={"structured": {"x": 1, "y": 0}})),
        ({"a": Path("/x")}, FunctionResult('{\n  "a": "/x"\n}', metadata={"structured": {"a": "/x"}})),
        ({"title": "T", "output": "o", "metadata": {"n": 1}}, FunctionResult("o", "T", {"n": 1})),
        ({"output": "o", "title": None}, FunctionResult("o")),
        ({"output": "o", "other": 1}, FunctionResult('{\n  "output": "o",\n  "other": 1\n}',
                                                     metadata={"structured": {"output": "o", "other": 1}})),
        ({"output": "", "attachments": [{"mime": "image/png", "url": "data:,"}]},
         FunctionResult("", attachments=({"mime": "image/png", "url": "data:,"},))),
    ],
)  # fmt: skip
def test_what_is_returned_is_the_result(value: Any, result: FunctionResult) -> None:
    assert convert_result(value) == result


@pytest.mark.parametrize("value", [object(), {"output": 3}, [lambda: 1]])
def test_what_is_no_result_is_said(value: Any) -> None:
    with pytest.raises(TypeError):
        convert_result(value)


def test_bound_methods_and_callable_objects_are_tools() -> None:
    class Counter:
        """Count."""

        def add(self, by: int) -> int:
            """Add."""
            return by + 1

        def __call__(self, by: int) -> int:
            return by + 2

    bound: FunctionTool = make_function_tool(Counter().add)
    assert (bound.name, bound.description, list(bound.parameters["properties"])) == (
        "add",
        "Add.",
        ["by"],
    )
    assert called(Counter().add, {"by": 1}).output == "2"
    assert called(Counter(), {"by": 1}).output == "3"


@pytest.mark.parametrize(
    "text",
    [
        "Do it.\n\nArgs:\n    a: First\n        line.\n    b (int, optional): Second.",
        "Do it.\n\nParameters\n----------\na : str\n    First\n    line.\nb : int\n    Second.",
        "Do it.\n\n:param a: First\n    line.\n:type a: str\n:param int b: Second.",
    ],
)
def test_docstrings_of_three_styles(text: str) -> None:
    assert read_docstring(text) == ("Do it.", {"a": "First line.", "b": "Second."})


def test_an_optional_without_a_default_may_be_left_out() -> None:
    def look(where: str | None) -> str:
        return where or "everywhere"

    assert "required" not in make_function_tool(look).parameters
    assert called(look, {}).output == "everywhere"
