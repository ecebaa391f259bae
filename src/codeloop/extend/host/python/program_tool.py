"""A program in any language as a tool: it prints its schema for `--schema`,
and reads a call from stdin.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from codeloop.extend.functions import FunctionResult, convert_result
from codeloop.extension import Context
from codeloop.kit.child_process import Launch
from codeloop.kit.jsonc import is_object
from codeloop.kit.program import run_program
from codeloop.schema.bounds.extension import PROGRAM_OUTPUT, PROGRAM_SCHEMA
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import DECODE_ERRORS, JSON, decode_json
from codeloop.tool.json_schema import drop_nulls

_SCHEMA_OPTION = "--schema"


class ProgramFailed(CodeloopError):
    """A program can't be started, or it failed; the text has the program's own
    message if there is one.
    """


class _ProgramSchema(Struct, frozen=True):
    """A program's output for `--schema`. `parameters`: a JSON Schema of an object."""

    description: str
    parameters: JSON
    name: str = ""


class ProgramTool(Struct, frozen=True):
    """A program as a tool, called like a FunctionTool."""

    name: str
    description: str
    parameters: JSON
    path: str

    async def call(self, arguments: JSON, context: Context | None = None) -> FunctionResult:
        """Run the program with the arguments as JSON on its input. Raises ProgramFailed."""
        variables = {} if context is None else {"CODELOOP_SESSION_ID": context.session_id}
        payload = msgspec.json.encode(drop_nulls(arguments, self.parameters))
        output = (await _run_program(self.path, (), payload, variables)).decode(errors="replace")
        value: Any = output.removesuffix("\n")
        # JSON with `output` is a whole result; any other output is the text itself.
        if output.startswith("{"):
            with suppress(msgspec.DecodeError):
                value = _parse_result(output) or value
        return convert_result(value)


async def load_program(path: str) -> ProgramTool:
    """Ask a program for its schema. Raises ProgramFailed."""
    name = Path(path).stem
    try:
        async with asyncio.timeout(PROGRAM_SCHEMA.seconds):
            output = await _run_program(path, (_SCHEMA_OPTION,), b"", {})
        schema = decode_json(output, _ProgramSchema)
    except TimeoutError:
        raise ProgramFailed(
            f"{_SCHEMA_OPTION} was not answered in {PROGRAM_SCHEMA.seconds:g} s."
        ) from None
    except DECODE_ERRORS as error:
        expected = 'one JSON object with "description" and "parameters" (a JSON Schema)'
        raise ProgramFailed(f"for {_SCHEMA_OPTION} it has to print {expected}: {error}.") from error
    if schema.parameters.get("type") != "object" or not is_object(
        schema.parameters.setdefault("properties", {})
    ):
        raise ProgramFailed(
            '"parameters" has to be the JSON Schema of an object: {"type": "object", "properties": ...}.'
        )
    return ProgramTool(schema.name or name, schema.description, schema.parameters, path)


def _parse_result(output: str) -> Any:
    """Decode a program's JSON output; None if it is not an object with the text `output`."""
    value = decode_json(output)
    return value if is_object(value) and isinstance(value.get("output"), str) else None


async def _run_program(
    path: str, words: tuple[str, ...], payload: bytes, variables: dict[str, str]
) -> bytes:
    """Run a program with `payload` as its input to its end, and return its output.
    Raises ProgramFailed.

    `variables`: are added to the environment. A cancelled call kills the program.
    """
    launch = Launch(
        (path, *words),
        Path.cwd(),
        {**os.environ, **variables},
        stdin=payload,
        max_bytes=PROGRAM_OUTPUT.value,
        max_error_bytes=PROGRAM_OUTPUT.value,
    )
    try:
        result = await run_program(launch)
    except OSError as error:
        raise ProgramFailed(f"it can't be started: {error.strerror or error}.") from error
    if result.stop_reason:
        raise ProgramFailed(f"It printed more than {PROGRAM_OUTPUT.value:,} bytes.")
    code = result.code
    if code:
        text = (result.stderr or result.stdout).decode(errors="replace").strip()
        ending = f"exit code {code}" if code > 0 else f"signal {-code}"
        raise ProgramFailed(
            f"{text} ({ending})" if text else f"It failed with {ending} and printed nothing."
        )
    return result.stdout
