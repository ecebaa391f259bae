"""Every parameter of every tool, wrong in every way: a reason that names it,
and no file is changed.
"""

import hashlib
import json
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.app.toolbox import make_toolbox
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.wire import JSON
from codeloop.tool.tool import ToolFailure, ToolResult, format_for_model
from codeloop.tool.toolbox import InvalidToolCall, PreparedCall
from tests.tool.context import TestContext, make_context

BOX = make_toolbox()
SCHEMAS: dict[str, JSON] = {
    spec.name: spec.parameters for spec in (tool.spec for tool in BOX.tools)
}
NEEDS_A_PERSON = frozenset({"question", "plan_exit"})
"""With good arguments these wait for an answer; their own tests answer."""
NEEDS_A_NETWORK = frozenset({"webfetch", "websearch", "codesearch"})
HOSTILE: dict[str, Any] = {
    "empty": "",
    "blank": " \n",
    "NUL": "a\0b",
    "huge": "x" * 1_000_000,
    "long path": "/".join(["d" * 200] * 40),
    "dots": "../" * 50,
    "a control character": "a\x1b[2J\r\nb",
    "not a character": "\ufffe\U0010ffff",
    "a home of nobody": "~nobody-of-that-name/x",
    "a device": "/dev/zero",
    "the root": "/",
    "a bad pattern": "[(",
    "braces": "{" * 500,
    "an option": "--help",
}
NUMBERS: dict[str, Any] = {
    "negative": -1,
    "zero": 0,
    "large": 2**63 - 1,
    "too large": 10**40,
    "absurd": 10**400,
    "a fraction": 1.5,
}
WRONG: dict[str, tuple[Any, ...]] = {
    "string": ([], {}, [1], {"a": None}),
    "integer": ("x", [], {}, 1.5, "1.5"),
    "number": ("x", [], {}, True),
    "boolean": ("maybe", [], {}, 7, 0.5),
    "array": (7, "x", {}, "[", '{"a":1}', {"0": "x"}),
    "object": (7, "x", [], "{", "[1]"),
}


@dataclass(frozen=True)
class Spot:
    """A place in a tool's parameters: the keys and list indices that lead there, and its schema."""

    tool: str
    path: tuple[str | int, ...]
    schema: JSON
    required: bool

    @property
    def kind(self) -> str:
        return self.schema.get("type", "string")

    @property
    def shown(self) -> str:
        """How a message names it: the first key is always there."""
        return str(self.path[0])

    def __str__(self) -> str:
        return f"{self.tool}.{'.'.join(map(str, self.path))}"


def spots(tool: str, schema: JSON, path: tuple[str | int, ...] = ()) -> Iterator[Spot]:
    for name, member in schema.get("properties", {}).items():
        here = (*path, name)
        yield Spot(tool, here, member, name in schema.get("required", ()))
        yield from spots(tool, member, here)
        if "items" in member:
            yield Spot(tool, (*here, 0), member["items"], required=True)
            yield from spots(tool, member["items"], (*here, 0))


def good(schema: JSON) -> Any:
    """Return a value that the schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: good(member) for name, member in schema.get("properties", {}).items()}
        case "array":
            return [good(schema["items"])]
        case "number":
            return 1.5
        case "integer":
            return 1
        case "boolean":
            return False
        case _:
            return "a.txt"


def changed(value: Any, path: tuple[str | int, ...], put: Any) -> Any:
    """Return a copy with something else at a place; `...` leaves it out."""
    head, *rest = path
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    if rest:
        copy[head] = changed(copy[head], tuple(rest), put)
    elif put is ...:
        del copy[head]
    else:
        copy[head] = put
    return copy


def sent(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


SPOTS = [spot for name, schema in SCHEMAS.items() for spot in spots(name, schema)]
ALL = pytest.mark.parametrize("spot", SPOTS, ids=str)


TEXTS = {("todowrite", "todos"), ("todowrite", "todos", 0)}


def refused(name: str, arguments: str) -> InvalidToolCall:
    found = BOX.prepare(name, arguments)
    assert isinstance(found, InvalidToolCall), found
    assert "Traceback" not in found.reason
    msgspec.json.encode(found.input)
    return found


def test_there_are_places_to_be_wrong_at() -> None:
    assert len(SPOTS) > 50


@pytest.mark.parametrize("name", SCHEMAS)
def test_good_arguments_are_prepared(name: str) -> None:
    assert isinstance(BOX.prepare(name, sent(good(SCHEMAS[name]))), PreparedCall)


@ALL
def test_a_wrong_type_is_named_with_what_is_expected(spot: Spot) -> None:
    for wrong in WRONG[spot.kind]:
        if wrong == "x" and (spot.path[-1] == "ignore" or (spot.tool, *spot.path[:2]) in TEXTS):
            continue  # one text stands for a list of it, or for a todo
        found = refused(spot.tool, sent(changed(good(SCHEMAS[spot.tool]), spot.path, wrong)))
        assert f"{spot.shown}: " in str(found).replace("?:", ":"), "what it takes is shown"
        if not found.is_unusable:  # a number that JSON readers do not take is said of the whole
            assert f".{spot.shown}" in found.reason.partition("It takes")[0], (
                "the parameter is named"
            )


# What a call may leave out although the schema asks for it: it is filled in, with a note.
FILLED = {("task", "description"), ("task", "subagent_type")}

# One of them without the other is refused, also beside a list of edits.
HALVES = {("edit", "oldString"), ("edit", "newString")}


@ALL
def test_what_is_missing_or_null_is_named_when_it_is_required_and_else_left_out(spot: Spot) -> None:
    if isinstance(spot.path[-1], int):
        return
    for nothing in (..., None):
        arguments = sent(changed(good(SCHEMAS[spot.tool]), spot.path, nothing))
        name = (spot.tool, spot.path[-1])
        is_half = len(spot.path) == 1 and name in HALVES
        if (spot.required and name not in FILLED) or is_half:
            assert (
                str(spot.path[-1]) in refused(spot.tool, arguments).reason.partition("Rewrite")[0]
            )
        else:
            found = BOX.prepare(spot.tool, arguments)
            assert isinstance(found, PreparedCall), found
            assert "null" not in msgspec.json.encode(found.input).decode()


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize(
    "arguments",
    ["null", "[]", "7", '"x', "{", '{"a":', "\udcff", '{"a":"\\ud800"}', "[" * 100_000, '{"a":' * 5_000, "\0"]
    + ['{"a":' + "[" * depth + "]" * depth + "}" for depth in (65, 900, 5_000)],
)  # fmt: skip
def test_what_is_no_object_is_refused_with_what_is_expected(name: str, arguments: str) -> None:
    found = refused(name, arguments)
    assert found.is_unusable
    assert "not a JSON object" in found.reason
    assert all(
        f"{key}: " in found.reason.replace("?:", ":") for key in SCHEMAS[name].get("properties", {})
    )


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_parameter_that_is_not_there_changes_nothing(name: str) -> None:
    for extra in ("x", None, {"a": {"b": []}}, 10**40):
        found = BOX.prepare(name, sent({**good(SCHEMAS[name]), "no_such_parameter": extra}))
        assert isinstance(found, PreparedCall)
        assert found.params == getattr(BOX.prepare(name, sent(good(SCHEMAS[name]))), "params", None)
        msgspec.json.encode(found.input)


@pytest.fixture
async def ctx(tmp_path: Path) -> AsyncIterator[TestContext]:
    made = make_context(tmp_path)
    root = made.workspace.root
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "folder").mkdir()
    (root / "folder" / "b.py").write_bytes(b"\xff\0binary")
    made.deny = ("external_directory", "edit", "bash")  # nothing may change, whatever is asked
    yield made
    await made.workspace.shells.close()
    made.store.close()


def state(root: Path) -> str:
    """Return a digest of every name, type, mode and content below a folder."""
    seen = hashlib.sha256()
    for folder, folders, files in sorted(os.walk(root)):
        for name in sorted((*folders, *files)):
            path = Path(folder, name)
            info = path.lstat()
            seen.update(
                f"{path} {info.st_mode} {info.st_size} {info.st_mtime_ns}\n".encode(
                    "utf-8", "surrogateescape"
                )
            )
            if path.is_file():
                seen.update(path.read_bytes())
    return seen.hexdigest()


async def outcome(name: str, value: Any, ctx: TestContext) -> ToolResult | str:
    """Make the call as the loop does; what it raises beyond the agreed
    exceptions fails the test.
    """
    found = BOX.prepare(name, sent(value))
    if isinstance(found, InvalidToolCall):
        return str(found)
    try:
        return await found.tool.run(found.params, ctx)
    except (ToolFailure, Denied, Rejected) as error:
        return format_for_model(error)


RUNNABLE = [
    spot
    for spot in SPOTS
    if spot.tool not in NEEDS_A_PERSON | NEEDS_A_NETWORK and spot.tool != "todowrite"
]


@pytest.mark.parametrize(
    "spot", [spot for spot in RUNNABLE if spot.kind in {"string", "integer"}], ids=str
)
async def test_a_hostile_value_gives_a_result_or_a_reason_and_changes_no_file(
    spot: Spot, ctx: TestContext
) -> None:
    before = state(ctx.workspace.root)
    for value in (HOSTILE if spot.kind == "string" else NUMBERS).values():
        told = await outcome(spot.tool, changed(good(SCHEMAS[spot.tool]), spot.path, value), ctx)
        text = told.output if isinstance(told, ToolResult) else told
        assert text
        assert "Traceback" not in text
        text.encode()  # what is told can be stored and sent
        if isinstance(told, ToolResult):
            msgspec.json.encode([told.title, told.metadata])
    assert state(ctx.workspace.root) == before


@pytest.mark.parametrize("spot", [spot for spot in RUNNABLE if spot.kind == "array"], ids=str)
async def test_a_list_that_is_empty_or_endless_gives_a_result_or_a_reason(
    spot: Spot, ctx: TestContext
) -> None:
    before = state(ctx.workspace.root)
    one = good(spot.schema["items"])
    for value in ([], [one] * 300):
        assert await outcome(spot.tool, changed(good(SCHEMAS[spot.tool]), spot.path, value), ctx)
    assert state(ctx.workspace.root) == before
