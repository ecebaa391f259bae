"""Writes the answers of a model as `--replay` reads them: JSON Lines, one answer a line."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ScriptedCall = tuple[str, Mapping[str, Any]]
"""A tool's name and its arguments."""


def write_replay_script(path: Path, *steps: Sequence[ScriptedCall]) -> Path:
    """Write a script with the calls of each step, then a text; return its path."""
    answers: list[Mapping[str, Any]] = [
        {"calls": [{"name": name, "arguments": arguments} for name, arguments in step]}
        for step in steps
    ]
    # The side answer is for the title, which a session asks its model for beside the steps.
    lines = [*answers, {"text": "Done."}, {"kind": "side", "text": "A title"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
