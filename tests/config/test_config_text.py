"""Changes of a configuration file: comments and everything else stay as they are."""

from typing import Any

import pytest

from codeloop.config.config_text import (
    NotEditable,
    add_to_list,
    edit_text,
    remove_from_list,
    set_value,
)
from codeloop.kit.jsonc import parse_jsonc


def is_x(entry: Any) -> bool:
    return entry == "x" or entry[0] == "x"


CASES = [
    (None, '{\n  "plugin": ["x"]\n}\n'),
    ("{}", '{\n  "plugin": ["x"]\n}'),
    (
        '{\n  // mine\n  "model": "a/b", // b\n}\n',
        '{\n  "plugin": ["x"],\n  // mine\n  "model": "a/b", // b\n}\n',
    ),
    ('{"plugin": []}', '{"plugin": ["x"]}'),
    ('{"plugin": ["a" /* a */]}', '{"plugin": ["a", "x" /* a */]}'),
    (
        '{\n  "plugin": [\n    "a", // a\n  ]\n}',
        '{\n  "plugin": [\n    "a",\n    "x", // a\n  ]\n}',
    ),
    ('{"plugin": ["x", ["y", {"z": 1}]]}', '{"plugin": ["x", ["y", {"z": 1}]]}'),
    ('{"plugin": [["x", {"z": 1}]]}', '{"plugin": [["x", {"z": 1}]]}'),
]


@pytest.mark.parametrize(("before", "after"), CASES)
def test_an_entry_is_added_where_the_list_stands(before: str | None, after: str) -> None:
    assert add_to_list(before, "plugin", "x", is_x) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"plugin": ["x"]}', "{}"),
        ('{"plugin": ["x"], "model": "a/b"}', '{ "model": "a/b"}'),
        ('{"model": "a/b", "plugin": ["x"]}', '{"model": "a/b"}'),
        (
            '{\n  "plugin": ["x"],\n  // mine\n  "model": "a/b"\n}\n',
            '{\n  // mine\n  "model": "a/b"\n}\n',
        ),
        ('{"plugin": ["x", "a"]}', '{"plugin": ["a"]}'),
        ('{"plugin": ["a", "x"]}', '{"plugin": ["a"]}'),
        ('{"plugin": ["a", /* x */ "x", "b"]}', '{"plugin": ["a", /* x */ "b"]}'),
        ('{"plugin": ["a"]}', '{"plugin": ["a"]}'),
        ("{}", "{}"),
    ],
)
def test_an_entry_is_taken_out(before: str, after: str) -> None:
    assert remove_from_list(before, "plugin", lambda entry: entry == "x") == after


def test_what_is_no_list_is_left_alone() -> None:
    for text in ('{"plugin": "x"}', "[]"):
        with pytest.raises(NotEditable):
            add_to_list(text, "plugin", "x", is_x)


X: dict[str, Any] = {"a": 1}
ENTRIES = [
    (None, '{\n  "mcp": {\n    "x": {\n      "a": 1\n    }\n  }\n}\n'),
    ("{}", '{\n  "mcp": {\n    "x": {\n      "a": 1\n    }\n  }\n}'),
    (
        '{\n  // mine\n  "model": "a/b", // b\n}\n',
        '{\n  // mine\n  "model": "a/b",\n  "mcp": {\n    "x": {\n      "a": 1\n    }\n  }, // b\n}\n',
    ),
    ('{"mcp": {}}', '{"mcp": {\n    "x": {\n      "a": 1\n    }\n  }}'),
    (
        '{\n  "mcp": {\n    // y\n    "y": {"b": 2} // y\n  }\n}\n',
        '{\n  "mcp": {\n    // y\n    "y": {"b": 2},\n    "x": {\n      "a": 1\n    } // y\n  }\n}\n',
    ),
    (
        '{"mcp": {"x": {"old": 1} /* x */, "y": {}}}',
        '{"mcp": {"x": {\n      "a": 1\n    } /* x */, "y": {}}}',
    ),
]


@pytest.mark.parametrize(("before", "after"), ENTRIES)
def test_an_entry_is_set_where_its_section_stands(before: str | None, after: str) -> None:
    assert set_value(before or "", ("mcp", "x"), X) == after
    assert parse_jsonc(after).value["mcp"]["x"] == X


def test_an_entry_is_taken_out_of_its_section() -> None:
    assert set_value('{\n  // mine\n  "mcp": {"x": {}, "y": {}}\n}', ("mcp", "x"), None) == (
        '{\n  // mine\n  "mcp": { "y": {}}\n}'
    )
    assert set_value('{"mcp": {"x": {}}}', ("mcp", "x"), None) == '{"mcp": {}}'
    assert set_value('{"model": "a/b"}', ("mcp", "x"), None) == '{"model": "a/b"}'


@pytest.mark.parametrize("text", ["[]", '{"mcp": []}', '{"mcp": "x"}'])
def test_what_is_no_section_is_left_alone(text: str) -> None:
    with pytest.raises(NotEditable):
        set_value(text, ("mcp", "x"), X)
    with pytest.raises(NotEditable):
        set_value(text, ("mcp", "x"), None)


def test_a_change_keeps_comments() -> None:
    before = """{
  // models
  "model": "a/b", // the usual
  "permission": {"bash": {"git *": "allow", "*": "ask"}}, /* careful */
  "compaction": {
    "auto": true, // always
  },
}
"""
    change = {
        "model": None,
        "permission": {"bash": {"git *": "deny"}},
        "compaction": {"auto": False, "prune": False},
        "sandbox": {"mode": "off"},
    }
    after = edit_text(before, change)
    for comment in ("// models", "// the usual", "/* careful */", "// always"):
        assert comment in after
    value = parse_jsonc(after).value
    assert value == {
        "permission": {"bash": {"*": "ask", "git *": "deny"}},
        "compaction": {"auto": False, "prune": False},
        "sandbox": {"mode": "off"},
    }
    assert list(value["permission"]["bash"]) == ["*", "git *"]
