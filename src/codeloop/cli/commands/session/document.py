"""A JSON file that somebody else wrote, with the line and column of what is wrong in it."""

import re
import sys
from pathlib import Path

import msgspec

from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import IMPORT_BYTES
from codeloop.schema.wire import JSON


def read_document(file: Path) -> JSON:
    """Read a JSON object from a file, or from stdin (`-`).

    Raises CodeloopError: it can't be read, is too large, or is no JSON object (with the line and column).
    """
    name = "stdin" if str(file) == "-" else str(file)
    data = _content(file, name)
    if len(data) > IMPORT_BYTES.value:
        raise CodeloopError(f"{name} is larger than {IMPORT_BYTES.value} bytes. It was not read.")
    try:
        return msgspec.json.decode(data, type=JSON)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CodeloopError(f"{name} is no JSON object: {_place(data, str(error))}. Nothing was stored.") from error
    except RecursionError as error:
        raise CodeloopError(f"{name} is nested too deeply. Nothing was stored.") from error


def _content(file: Path, name: str) -> bytes:
    try:
        if str(file) == "-":
            return sys.stdin.buffer.read(IMPORT_BYTES.value + 1)
        with file.open("rb") as stream:
            return stream.read(IMPORT_BYTES.value + 1)
    except OSError as error:
        raise CodeloopError(f"{name} can't be read: {error.strerror}.") from error


def _place(data: bytes, message: str) -> str:
    """Return the message with a line and column in the place of a byte's number."""
    found = re.search(r" \(byte (\d+)\)", message)
    if found is None:
        return message if data.strip() else "it is empty"
    before = data[: int(found[1])]
    line = before.count(b"\n") + 1
    column = len(before) - before.rfind(b"\n")
    return f"{message.replace(found[0], '')}, at line {line}, column {column}"
