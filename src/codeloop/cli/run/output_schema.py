"""Reads and checks the JSON Schema of `run --schema`."""

import os
from pathlib import Path

from codeloop.agent.structured.validation import find_schema_problems
from codeloop.kit.jsonc import JsoncError, parse_jsonc
from codeloop.schema.errors import UsageProblem
from codeloop.schema.wire import JSON


async def read_answer_format(path: Path) -> JSON:
    """Return the `format` of a prompt whose answer has to match the JSON Schema in a file.

    Raises UsageProblem, with the position and the reason, if the file holds no valid JSON Schema.
    """
    try:
        # Editors of Windows write a byte order mark.
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageProblem(f"--schema: {path} is not UTF-8 text.") from error
    except OSError as error:
        raise UsageProblem(f"--schema: {path} can't be read: {error.strerror}.") from error
    try:
        document = parse_jsonc(text)
    except JsoncError as error:
        raise UsageProblem(f"--schema: {path}:{error.position}: {error}") from error
    for problem in await find_schema_problems(document.value, os.environ):
        raise UsageProblem(f"--schema: {path}:{document.find_position(problem.path)}: {problem}")
    return {"type": "json_schema", "schema": document.value}
