"""An entry more or less in a list of a configuration file: comments and everything else stay as they are."""

from typing import Any

import pytest

from codeloop.config.edit_file import NotPlain, with_listed, without_listed


def is_x(entry: Any) -> bool:
    return entry == "x" or entry[0] == "x"


CASES = [
    (None, '{\n  "plugin": ["x"]\n}\n'),
    ("{}", '{\n  "plugin": ["x"]\n}'),
    ('{\n  // mine\n  "model": "a/b", // b\n}\n', '{\n  "plugin": ["x"],\n  // mine\n  "model": "a/b", // b\n}\n'),
    ('{"plugin": []}', '{"plugin": ["x"]}'),
    ('{"plugin": ["a" /* a */]}', '{"plugin": ["a", "x" /* a */]}'),
    ('{\n  "plugin": [\n    "a", // a\n  ]\n}', '{\n  "plugin": [\n    "a",\n    "x", // a\n  ]\n}'),
    ('{"plugin": ["x", ["y", {"z": 1}]]}', '{"plugin": ["x", ["y", {"z": 1}]]}'),
    ('{"plugin": [["x", {"z": 1}]]}', '{"plugin": [["x", {"z": 1}]]}'),
]


@pytest.mark.parametrize(("before", "after"), CASES)
def test_an_entry_is_added_where_the_list_stands(before: str | None, after: str) -> None:
    assert with_listed(before, "plugin", "x", is_x) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"plugin": ["x"]}', "{}"),
        ('{"plugin": ["x"], "model": "a/b"}', '{ "model": "a/b"}'),
        ('{"model": "a/b", "plugin": ["x"]}', '{"model": "a/b"}'),
        ('{\n  "plugin": ["x"],\n  // mine\n  "model": "a/b"\n}\n', '{\n  // mine\n  "model": "a/b"\n}\n'),
        ('{"plugin": ["x", "a"]}', '{"plugin": ["a"]}'),
        ('{"plugin": ["a", "x"]}', '{"plugin": ["a"]}'),
        ('{"plugin": ["a", /* x */ "x", "b"]}', '{"plugin": ["a", /* x */ "b"]}'),
        ('{"plugin": ["a"]}', '{"plugin": ["a"]}'),
        ("{}", "{}"),
    ],
)
def test_an_entry_is_taken_out(before: str, after: str) -> None:
    assert without_listed(before, "plugin", lambda entry: entry == "x") == after


def test_what_is_no_list_is_left_alone() -> None:
    for text in ('{"plugin": "x"}', "[]"):
        with pytest.raises(NotPlain):
            with_listed(text, "plugin", "x", is_x)
