"""What the protocols of the model server share: compact JSON, arguments in pieces,
the lists of models.
"""

import json
from collections.abc import Iterable
from typing import Any

CREATED = 1_760_000_000
"""The time of creation in each answer, Unix seconds;
fixed, so that all answers of a scenario have the same bytes.
"""
# Short, so that most pieces end in the middle of a name or a value.
ARGUMENT_PIECE_CHARACTERS = 16


def dump_json(value: Any) -> str:
    """Return compact JSON, as services send it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def split_arguments(arguments: str | None) -> list[str]:
    """Split the JSON text of a call's arguments into the pieces in which it is streamed."""
    text = arguments or ""
    return [
        text[start : start + ARGUMENT_PIECE_CHARACTERS]
        for start in range(0, len(text), ARGUMENT_PIECE_CHARACTERS)
    ]


def make_model_list(names: Iterable[str]) -> bytes:
    """Return the body of `GET /v1/models`, in a form that clients of OpenAI
    and of Anthropic read.
    """
    common = {"object": "model", "type": "model", "display_name": "Bench", "created": CREATED}
    return dump_json(
        {"object": "list", "data": [{"id": name, **common} for name in names], "has_more": False}
    ).encode()
