"""Answers of a model as `--replay` reads them: JSON Lines, one answer a line."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Call = tuple[str, Mapping[str, Any]]
"""A tool's name and its arguments."""


def write(path: Path, *steps: Sequence[Call]) -> Path:
    """Write a script that makes the calls of each step and then says one word; with an answer for a title."""
    answers: list[Mapping[str, Any]] = [
        {"calls": [{"name": name, "arguments": arguments} for name, arguments in step]} for step in steps
    ]
    lines = [*answers, {"text": "Done."}, {"kind": "side", "text": "A title"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
