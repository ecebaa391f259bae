"""Texts that mean numbers, booleans, lists or objects,
in calls of tools that are described by a JSON Schema alone.
"""

from typing import Any

import pytest

from codeloop.tool.repair.typed_values import convert_texts

NUMBER, WHOLE, TRUTH, TEXT = ({"type": kind} for kind in ("number", "integer", "boolean", "string"))
LIST = {"type": "array", "items": WHOLE}
OBJECT = {"type": "object", "properties": {"n": NUMBER}}


@pytest.mark.parametrize(
    ("given", "schema", "meant"),
    [
        ("4", WHOLE, 4),
        (" -4 ", NUMBER, -4),
        ("4.5", NUMBER, 4.5),
        ("1e3", NUMBER, 1000.0),
        ("4", {"type": ["number", "null"]}, 4),
        ("4", {"anyOf": [NUMBER, {"type": "null"}]}, 4),
        ("True", TRUTH, True),
        ('["1", 2]', LIST, [1, 2]),
        ('{"n": "2"}', OBJECT, {"n": 2}),
        ({"n": "2", "m": "3"}, OBJECT, {"n": 2, "m": "3"}),
        # What may be a text, or is no such value, stays as it is.
        ("4", TEXT, "4"),
        ("4", {}, "4"),
        ("4", {"anyOf": [NUMBER, TEXT]}, "4"),
        ("4.5", WHOLE, "4.5"),
        ("many", NUMBER, "many"),
        ("", NUMBER, ""),
        ("9" * 400, NUMBER, "9" * 400),
        ("yes", TRUTH, "yes"),
        ("[1", LIST, "[1"),
        ("[" * 100_000, LIST, "[" * 100_000),
    ],
)
def test_a_text_becomes_what_alone_it_can_mean(
    given: Any, schema: dict[str, Any], meant: Any
) -> None:
    converted = convert_texts(given, schema)
    assert converted == meant
    assert type(converted) is type(meant)
