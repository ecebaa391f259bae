"""Typed answers: a type becomes a schema, the answer an instance of it."""

from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, field_validator

import codeloop
from codeloop.library.result_type import ResultType
from codeloop.model.testing.script import ScriptedAnswer
from tests.library.opened import Open, opened
from tests.support.scripted_project import make_answer, make_call

__all__ = ["opened"]


@dataclass
class Remark:
    """A remark on a line."""

    line: int
    text: str
    weight: Literal["low", "high"] = "low"


@dataclass
class Review:
    """A review of a file."""

    summary: str
    remarks: list[Remark] = field(default_factory=list[Remark])


class Town(TypedDict):
    name: str


class Point(msgspec.Struct):
    x: int
    y: int | None = None


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def check(cls, number: int) -> int:
        if number % 2:
            raise ValueError("it is odd")
        return number


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        (
            Review,
            {"summary": "s", "remarks": [{"line": 3, "text": "t"}]},
            Review("s", [Remark(3, "t")]),
        ),
        (Town, {"name": "Oslo"}, {"name": "Oslo"}),
        (Point, {"x": 1}, Point(1)),
        (Even, {"number": 4}, Even(number=4)),
        (list[Even], [{"number": 4}], [Even(number=4)]),
        (list[str], ["a"], ["a"]),
        (int, 3, 3),
    ],
)
def test_a_type_is_described_and_converted_to(kind: Any, given: Any, value: Any) -> None:
    result = ResultType(kind)
    assert msgspec.json.encode(result.schema)
    assert result.convert(given) == value


def test_what_can_not_be_described_says_what_can() -> None:
    with pytest.raises(codeloop.CodeloopError, match="Use a dataclass, a TypedDict"):
        ResultType(type("Strange", (), {"__init__": lambda self: None}))


def answer(**given: Any) -> ScriptedAnswer:
    return make_answer(make_call("StructuredOutput", **given))


@pytest.mark.slow
async def test_an_answer_has_the_type_that_was_asked_for(opened: Open) -> None:
    async with opened([answer(summary="Good.", remarks=[{"line": 3, "text": "Why?"}])]) as project:
        given = await project.ask("review calc.py", result=Review)
        assert given.result == Review("Good.", [Remark(3, "Why?")])
        assert given.result.remarks[0].weight == "low"


@pytest.mark.slow
async def test_what_the_type_itself_refuses_is_an_error_with_the_answer(opened: Open) -> None:
    async with opened([answer(number=3)]) as project:
        with pytest.raises(
            codeloop.WrongResult,
            match=r"is not a valid Even: .*it is odd - at `\$\.number`\. Ask again",
        ) as caught:
            await project.ask("an even number", result=Even)
        assert caught.value.answer.reason == "done"


@pytest.mark.slow
async def test_what_never_fits_is_a_failed_turn(opened: Open) -> None:
    async with opened([answer(summary=3)] * 9) as project:
        with pytest.raises(codeloop.TurnFailed) as caught:
            await project.ask("review calc.py", result=Review)
        assert caught.value.answer.reason == "error"
