"""Validates JSON Schemas, and values against them; with deadlines, since schemas can be costly."""

from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from codeloop.kit.child_process import Launch
from codeloop.kit.jsonc import is_list, is_object
from codeloop.kit.program import run_program
from codeloop.schema.bounds.structured import (
    SCHEMA_BYTES,
    SCHEMA_DEPTH,
    SCHEMA_TIME,
    STRUCTURED_BYTES,
)
from codeloop.schema.errors import CodeloopError
from codeloop.schema.installation import make_python_command
from codeloop.schema.wire import JSON

_PROGRAM = Path(__file__).with_name("validator_process.py")
_MAX_OUTPUT_BYTES = 1024 * 1024
# A check that waits without using the processor is late,
# too: at this multiple of its processor time by the clock.
_MAX_CLOCK_FACTOR = 6


class Problem(Struct, frozen=True):
    """A problem of a schema or a value. `path`: the keys and indexes that lead to it."""

    path: tuple[str | int, ...]
    message: str

    def __str__(self) -> str:
        """Return the problem in one line."""
        return f"{format_path(self.path)}: {self.message}"


class SchemaTooCostly(CodeloopError):
    """A check exceeded its time or memory."""


async def find_schema_problems(schema: Any, environment: Mapping[str, str]) -> list[Problem]:
    """Return the problems of a schema; none: it is usable."""
    if not is_object(schema):
        return [Problem((), "a schema is a JSON object")]
    if len(msgspec.json.encode(schema)) > SCHEMA_BYTES.value:
        return [Problem((), f"it is longer than {SCHEMA_BYTES.value} bytes")]
    if _measure_depth(schema) > SCHEMA_DEPTH.value:
        return [Problem((), f"it is nested deeper than {SCHEMA_DEPTH.value} levels")]
    try:
        return await _run_check({"schema": schema}, environment)
    except SchemaTooCostly as error:
        return [Problem((), str(error))]


async def find_value_problems(
    schema: JSON, value: Any, environment: Mapping[str, str]
) -> list[Problem]:
    """Find where a value does not match its schema."""
    if value is None:
        return [Problem((), "null is not an answer")]
    if len(msgspec.json.encode(value)) > STRUCTURED_BYTES.value:
        return [Problem((), f"it is longer than {STRUCTURED_BYTES.value} bytes")]
    try:
        return await _run_check({"schema": schema, "value": value}, environment)
    except SchemaTooCostly as error:
        return [Problem((), str(error))]


def format_path(path: tuple[str | int, ...]) -> str:
    """Return a path in the notation of JavaScript: `files[0].name`."""
    location = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return f"`{location.removeprefix('.')}`" if location else "the whole"


async def _run_check(request: JSON, environment: Mapping[str, str]) -> list[Problem]:
    """Run `validator_process.py` on a request; return the problems that it found.
    Raises SchemaTooCostly.
    """
    # Processor time, not the clock: on a busy machine even a simple schema may take long.
    seconds = SCHEMA_TIME.seconds
    text, deadline = msgspec.json.encode(request), seconds * _MAX_CLOCK_FACTOR
    command = make_python_command(_PROGRAM, ceil(seconds))
    launch = Launch(
        command, "/", environment, stdin=text, seconds=deadline, max_bytes=_MAX_OUTPUT_BYTES
    )
    result = await run_program(launch)
    if result.is_late:
        raise SchemaTooCostly(
            f"checking it takes more than {seconds:g} s. Make its patterns simpler."
        )
    lines = result.stdout.splitlines()
    if result.code or not lines:
        raise SchemaTooCostly("it can't be checked: that takes too much memory.")
    return msgspec.json.decode(lines[-1], type=list[Problem])


def _measure_depth(value: Any) -> int:
    """Return how many levels a value has: 1 for text or a number."""
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [member for each in level for member in _list_members(each)]
    return depth


def _list_members(value: Any) -> list[Any]:
    if is_object(value):
        return list(value.values())
    return value if is_list(value) else []
