"""Mentions of files, subagents and resources in prompts."""

import pytest

from codeloop.kit.text.mentions import list_mentions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see @src/a.py, and @b.txt.", ["src/a.py", "b.txt"]),
        ("@~/x (@../y)", ["~/x", "../y"]),
        ('@"my notes.md" twice @"my notes.md"', ["my notes.md"]),
        ("me@example.org `@code` @ alone", []),
        ("@team/reviewer please", ["team/reviewer"]),
        ("npm i @scope/pkg@1.2", ["scope/pkg@1.2"]),
    ],
)
def test_mentions_are_found(text: str, expected: list[str]) -> None:
    assert list_mentions(text) == expected
