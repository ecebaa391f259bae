"""What people paste to add a server: JSON of other programs' READMEs, command lines,
and what is wrong with some.
"""

from typing import Any

import pytest

from codeloop.extend.mcp.command_lines import split_command_line
from codeloop.extend.mcp.definition import parse_definition
from codeloop.extend.mcp.snippets import looks_like_json, parse_snippet, reject_placeholders
from codeloop.schema.errors import UsageProblem

NPX = {"type": "local", "command": ["npx", "-y", "a"]}
THEIRS = '{"command": "npx", "args": ["-y", "a"]}'
X, B = {"type": "local", "command": ["x"]}, {"type": "remote", "url": "https://b"}


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        (f'{{"mcpServers": {{"a": {THEIRS}}}}}', "", {"a": NPX}),
        (f'{{"mcpServers": {{"a": {THEIRS}}}}}', "mine", {"mine": NPX}),
        (f'{{"mcp": {{"servers": {{"a": {THEIRS}}}}}}}', "", {"a": NPX}),
        (
            '"a": {"command": "npx", "args": ["-y", "a"], "disabled": true},',
            "",
            {"a": {**NPX, "enabled": False}},
        ),
        (f"{THEIRS} // from a README", "a", {"a": NPX}),
        (
            '{"mcp": {"x": {"type": "local", "command": ["x"], "timeout": 9}}}',
            "",
            {"x": {**X, "timeout": 9}},
        ),
        (
            '{"servers": {"b": {"type": "http", "url": "https://b", "headers": {"X": "${X_KEY:-a/b}"}}}}',
            "",
            {"b": {**B, "headers": {"X": "{env:X_KEY:-a/b}"}}},
        ),
        (f'{{"amp.mcpServers": {{"a": {THEIRS}}}}}', "", {"a": NPX}),
        ('{"mcpServers": [{"name": "x", "command": "x"}]}', "", {"x": X}),
        (
            '{"extensions": {"x": {"type": "stdio", "cmd": "x", "envs": {"A": "b"}}, "b": {"uri": "https://b"}}}',
            "",
            {"x": {**X, "environment": {"A": "b"}}, "b": B},
        ),
        ('{"mcpServers": {"b": {"serverUrl": "https://b"}}}', "", {"b": B}),
        (
            '{"x": {"command": "x", "env": {"ON": true, "NONE": null, "PORT": 80}}}',
            "",
            {"x": {**X, "environment": {"ON": "true", "PORT": "80"}}},
        ),
        (
            '{"b": {"url": "https://b", "headers": {"V": 2, "W": null}}}',
            "",
            {"b": {**B, "headers": {"V": "2"}}},
        ),
        ('{"mcpServers": {"a": {"command": "y"}, "x": {"command": "x"}}}', "x", {"x": X}),
    ],
)
def test_json_of_a_readme_becomes_entries(text: str, name: str, found: dict[str, Any]) -> None:
    assert looks_like_json(text)
    given = {each.name: each.entry for each in parse_snippet(text, name)}
    assert given == found
    assert [parse_definition(name, entry).problem for name, entry in given.items()] == [""] * len(
        given
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"command": "npx", ', "That is not JSON"),
        ('{"command": "npx"}', "That entry has no name"),
        ('{"theme": "dark"}', "There is no server in it"),
    ],
)
def test_json_that_holds_no_server_says_so(text: str, says: str) -> None:
    with pytest.raises(UsageProblem, match=says):
        parse_snippet(text)


def test_a_snippet_of_several_servers_says_which_there_are_when_the_name_is_none_of_them() -> None:
    text = '{"mcpServers": {"docs": {"command": "a"}, "wiki": {"command": "b"}}}'
    assert [each.name for each in parse_snippet(text, "wiki")] == ["wiki"]
    with pytest.raises(UsageProblem, match="None of its servers is named web: docs, wiki"):
        parse_snippet(text, "web")


@pytest.mark.parametrize(
    ("what", "words", "variables"),
    [
        (["npx", "-y", "a"], ["npx", "-y", "a"], {}),
        (["uvx a --at '/b c'"], ["uvx", "a", "--at", "/b c"], {}),
        (
            ["TOKEN=t", "docker", "run", "-e", "TOKEN", "i"],
            ["docker", "run", "-e", "TOKEN", "i"],
            {"TOKEN": "t"},
        ),
        (["env A=1 B=2 python3 s.py"], ["python3", "s.py"], {"A": "1", "B": "2"}),
    ],
)
def test_a_command_line_is_taken_as_it_is_typed(
    what: list[str], words: list[str], variables: dict[str, str]
) -> None:
    assert split_command_line("s", what) == (words, variables)


@pytest.mark.parametrize(
    ("name", "what", "says"),
    [
        ("https://mcp.linear.app/mcp", [], "codeloop mcp add linear https://mcp.linear.app/mcp"),
        (
            "npx",
            ["-y", "@scope/server-files@1.2"],
            "codeloop mcp add files npx -y @scope/server-files@1.2",
        ),
        ("uvx", ["mcp-server-git"], "codeloop mcp add git uvx mcp-server-git"),
        ("files", [], "A server has a name, which comes first"),
        ("a", ["mcp.example.com/mcp"], "An address begins so: https://mcp.example.com/mcp"),
        ("a", ["ftp://b"], "begins with https:// or http://"),
        ("a", ["TOKEN=x"], "no command behind them"),
        ("a", ["npx 'a"], "can't be read"),
    ],
)
def test_a_command_line_that_is_none_says_what_to_type(
    name: str, what: list[str], says: str
) -> None:
    with pytest.raises(UsageProblem) as raised:
        split_command_line(name, what)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    "value", ["YOUR_API_KEY", "<token>", "your-token-here", "xxxx", "Bearer <your token>", "..."]
)
def test_a_placeholder_is_not_taken_for_a_secret(value: str) -> None:
    for entry in ({"environment": {"KEY": value}}, {"headers": {"Authorization": value}}):
        with pytest.raises(UsageProblem, match="still has a placeholder"):
            reject_placeholders("a", entry)


@pytest.mark.parametrize("value", ["{env:KEY}", "sk-1234", "yourself", "/home/x", "Bearer {env:A}"])
def test_a_value_is_taken(value: str) -> None:
    reject_placeholders("a", {"environment": {"KEY": value}})


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"type": "local", "command": "npx a"}, "has to be a list of words"),
        ({"type": "local", "command": ["npx"], "args": ["a"]}, "`args` is another program's key"),
        ({"type": "local", "command": ["npx"], "env": {"A": "b"}}, "here that is `environment`"),
        ({"command": ["npx"]}, 'its `type` has to be "local" or "remote"'),
    ],
)
def test_an_entry_with_another_programs_keys_says_what_to_write(
    entry: dict[str, Any], says: str
) -> None:
    assert says in parse_definition("a", entry).problem
