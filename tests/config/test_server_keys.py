"""Keys that other programs have in their entries of MCP servers, and what becomes of them here."""

from pathlib import Path
from typing import Any

import pytest

from codeloop.config.forms.server_entries import convert_entry
from codeloop.extend.mcp.definition import parse_definition

X = {"type": "local", "command": ["x"]}
R = {"type": "remote", "url": "https://b"}


@pytest.mark.parametrize(
    ("given", "entry"),
    [
        # Cline, Roo, Windsurf
        ({"command": "x", "timeout": 60, "disabled": False}, {**X, "timeout": 60_000}),
        ({"command": "x", "timeout": 60_000}, {**X, "timeout": 60_000}),
        ({"command": "x", "disabledTools": ["a"]}, {**X, "tools": ["!a"]}),
        # Codex
        ({"command": "x", "startup_timeout_sec": 20, "tool_timeout_sec": 90}, {**X, "timeout": 90_000}),
        ({"command": "x", "startup_timeout_ms": 20_000}, {**X, "timeout": 20_000}),
        ({"command": "x", "env_vars": ["A"]}, {**X, "environment": {"A": "{env:A}"}}),
        ({"command": "x", "enabled_tools": ["a"], "disabled_tools": ["b"]}, {**X, "tools": ["a", "!b"]}),
        (
            {"url": "https://b", "bearer_token_env_var": "TOKEN", "http_headers": {"A": "b"}},
            {**R, "headers": {"A": "b", "Authorization": "Bearer {env:TOKEN}"}},
        ),
        ({"url": "https://b", "env_http_headers": {"A": "B"}}, {**R, "headers": {"A": "{env:B}"}}),
        # Gemini
        ({"command": "x", "includeTools": ["a"], "excludeTools": ["b"]}, {**X, "tools": ["a", "!b"]}),
        ({"httpUrl": "https://b", "timeout": 30_000}, {**R, "timeout": 30_000}),
        # VS Code, Cursor
        (
            {"type": "stdio", "command": "x", "envFile": "${workspaceFolder}/.env"},
            {**X, "envFile": "./.env"},
        ),
        # Zed
        ({"source": "custom", "command": {"path": "x", "args": ["y"], "env": {"A": "b"}}},
         {"type": "local", "command": ["x", "y"], "environment": {"A": "b"}}),
        # ours
        ({**X, "sandbox": False}, {**X, "sandbox": False}),
        ({**X, "sandbox": {"writable": ["~/d"]}}, {**X, "sandbox": {"writable": ["~/d"]}}),
        ({**X, "timeout": 60}, {**X, "timeout": 60}),
    ],
)  # fmt: skip
def test_what_others_write_is_taken(given: dict[str, Any], entry: dict[str, Any]) -> None:
    found = convert_entry("s", Path(), given)
    assert found.entry == entry
    assert parse_definition("s", found.entry).problem == ""


@pytest.mark.parametrize(
    ("given", "note"),
    [
        ({"timeout": 60}, "`timeout` 60 is taken for seconds; ours is written in ms."),
        ({"envirnoment": {}}, "`envirnoment` is not known and left out. Did you mean `environment`?"),
        ({"colour": 1}, "`colour` is not known and left out."),
        ({"sandbox": {"write": []}}, "`sandbox` has no key write here, so that is left out."),
    ],
)  # fmt: skip
def test_what_is_not_taken_is_said(given: dict[str, Any], note: str) -> None:
    assert convert_entry("s", Path(), {"command": "x", **given}).notes == (note,)


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({"alwaysAllow": ["a", "b"]}, ("a", "b")),
        ({"autoApprove": ["a"]}, ("a",)),
        ({"trust": True}, ("*",)),
        ({"autoApprove": []}, ()),
    ],
)
def test_tools_that_need_no_question_are_named_not_allowed(
    given: dict[str, Any], allowed: tuple[str, ...]
) -> None:
    found = convert_entry("s", Path(), {"command": "x", **given})
    assert (found.entry, found.allowed, found.notes) == (X, allowed, ())
