"""The innermost value that does not fit, and what was expected of it."""

from typing import Any

import msgspec
import pytest

from codeloop.config.type_errors import find_type_error
from codeloop.schema.config import Config


@pytest.mark.parametrize(
    ("value", "keys", "fault"),
    [
        ({"model": 1}, ("model",), "expected string, got integer"),
        ({"share": 1}, ("share",), 'expected "manual" or "auto" or "disabled", got integer'),
        ({"lsp": {"x": 1}}, ("lsp", "x"), "expected object, got integer"),
        ({"lsp": "x"}, ("lsp",), "expected true or false or object, got string"),
        ({"plugin": ["a", ["b", 1]]}, ("plugin", 1, 1), "expected object or string, got integer"),
        (
            {"provider": {"x": {"env": [1]}}},
            ("provider", "x", "env", 0),
            "expected string, got integer",
        ),
        ({"command": {"x": {}}}, ("command", "x"), "the key template is missing"),
        ({"mcp_share": "x"}, ("mcp_share",), "expected integer, got string"),
        ({"mcp_share": 200}, ("mcp_share",), "expected integer <= 100, got 200"),
        ({"subagents": {"ask": -1}}, ("subagents", "ask"), "expected integer >= 0, got -1"),
        ({"subagents": {"cost": []}}, ("subagents", "cost"), "expected number, got list"),
        ({"tool_output": []}, ("tool_output",), "expected object, got list"),
        ([], (), "expected object, got list"),
    ],
)
def test_the_innermost_fault_is_found(value: Any, keys: tuple[str | int, ...], fault: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(value, Config)
    assert find_type_error(value, Config) == (keys, fault)
