"""MCP servers in the form of other programs are read from our files, with a word,
and under the rules of `mcp`.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from codeloop.config.trust.contents import read_contents
from codeloop.extend.mcp.definition import parse_definitions
from tests.config.conftest import World

ARGS = ["-m", "docs"]
DOCS = {"type": "local", "command": ["python3", *ARGS]}
WEB = {"type": "remote", "url": "https://a.example/mcp"}


@pytest.mark.parametrize(
    ("settings", "servers"),
    [
        ({"mcpServers": {"docs": {"command": "python3", "args": ARGS}}}, {"docs": DOCS}),
        ({"mcpServers": {"docs": {"type": "stdio", "command": "python3 -m docs"}}}, {"docs": DOCS}),
        ({"mcp": {"mcpServers": {"docs": {"command": "python3", "args": ARGS}}}}, {"docs": DOCS}),
        ({"mcpServers": [{"name": "docs", "command": "python3", "args": ARGS}]}, {"docs": DOCS}),
        ({"mcp": {"docs": {"type": "stdio", "command": "python3", "args": ARGS}}}, {"docs": DOCS}),
        ({"mcp": {"docs": {"type": "local", "command": "python3 -m docs"}}}, {"docs": DOCS}),
        (
            {"mcp": {"docs": {**DOCS, "env": {"A": "1", "B": 2}}}},
            {"docs": {**DOCS, "environment": {"A": "1", "B": "2"}}},
        ),
        (
            {"mcp": {"docs": {**DOCS, "env": ["A=1=2", "B"]}}},
            {"docs": {**DOCS, "environment": {"A": "1=2"}}},
        ),
        (
            {"mcp": {"docs": {**DOCS, "environment": ["A=1"]}}},
            {"docs": {**DOCS, "environment": {"A": "1"}}},
        ),
        (
            {"mcp": {"docs": {**DOCS, "env": {"A": "${TOKEN}"}}}},
            {"docs": {**DOCS, "environment": {"A": "secret"}}},
        ),
        (
            {"mcp": {"docs": {"type": "stdio", "command": ["x"], "timeout": 5, "sandbox": False}}},
            {"docs": {"type": "local", "command": ["x"], "timeout": 5_000, "sandbox": False}},
        ),
        (
            {"mcpServers": {"docs": {"command": "x", "timeout": 60_000}}},
            {"docs": {"type": "local", "command": ["x"], "timeout": 60_000}},
        ),
        ({"mcp": {"web": {"type": "sse", "url": WEB["url"]}}}, {"web": WEB}),
        (
            {"mcp": {"web": {"type": "http", "url": WEB["url"], "headers": {"X": "1"}}}},
            {"web": {**WEB, "headers": {"X": "1"}}},
        ),
        (
            {
                "mcpServers": {
                    "web": {"type": "streamable-http", "url": WEB["url"], "disabled": True}
                }
            },
            {"web": {**WEB, "enabled": False}},
        ),
        (
            {
                "mcp": {"a": DOCS},
                "mcpServers": {"a": {"command": "other"}, "web": {"url": WEB["url"]}},
            },
            {"web": WEB, "a": DOCS},
        ),
    ],
)
def test_every_described_form_is_read_and_named(
    world: World, settings: dict[str, Any], servers: dict[str, Any]
) -> None:
    world.globally(settings)
    loaded = world.load(environment={"TOKEN": "secret"})
    assert loaded.config.mcp == servers
    assert all(each.problem == "" for each in parse_definitions(loaded.config.mcp, {}, {}).values())
    (warning,) = loaded.warnings
    name = next(name for name in servers if name != "a")
    assert warning.endswith(
        f": MCP servers in the form of other programs, read as those of `mcp`: {name}."
    )
    assert "codeloop.json:1:" in warning


def test_an_entry_may_only_switch_a_server_off(world: World) -> None:
    for entry in ({"disabled": True}, {"enabled": False}):
        world.globally({"mcpServers": {"docs": entry}})
        assert world.load().config.mcp == {"docs": {"enabled": False}}


def test_our_own_form_needs_no_word(world: World) -> None:
    world.globally(
        {"mcp": {"docs": DOCS, "web": WEB, "off": {"enabled": False}, "servers": {"inner": DOCS}}}
    )
    assert world.load().warnings == ()


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"x": 1}, "it has neither a command nor a url"),
        ({"command": "x", "args": ["${input:key}"]}, "it asks for a value"),
    ],
)
def test_what_can_not_be_read_is_named(world: World, entry: dict[str, Any], problem: str) -> None:
    world.globally({"mcpServers": {"odd": entry}})
    loaded = world.load()
    assert loaded.config.mcp == {}
    (warning,) = loaded.warnings
    assert f"the MCP server odd: {problem}" in warning


def test_an_untrusted_project_can_only_switch_servers_off(world: World) -> None:
    world.globally({"mcp": {"docs": DOCS}})
    world.write(
        "codeloop.json",
        {"mcpServers": {"docs": {"command": "x", "disabled": True}, "more": {"command": "y"}}},
    )
    loaded = world.load(trusted=False)
    assert loaded.config.mcp == {"docs": {**DOCS, "enabled": False}}
    assert loaded.ignored == ("mcp",)


@pytest.mark.parametrize(
    "settings",
    [
        {"mcpServers": {"docs": {"command": "python3", "args": ["tools/docs.py"]}}},
        {"mcp": {"docs": {"type": "stdio", "command": "python3 tools/docs.py"}}},
        {"mcp": {"servers": {"docs": {"type": "local", "command": ["python3", "tools/docs.py"]}}}},
    ],
)
def test_programs_of_such_servers_count_for_trust_and_are_the_projects(
    world: World, settings: dict[str, Any]
) -> None:
    world.write("codeloop.json", settings)
    world.write("tools/docs.py", "print(1)")
    contents = read_contents(world.paths, world.root, world.root)
    assert "tools/docs.py" in {**contents.files, **contents.hidden}
    origins = world.load().list_origins(("mcp", "docs"))
    assert origins
    assert all(origin.layer.is_project for origin in origins)


def test_a_server_whose_name_begins_like_another_has_its_own_origins(world: World) -> None:
    world.globally({"mcp": {"docs": DOCS}})
    world.write("codeloop.json", json.dumps({"mcp": {"docs2": DOCS, "docs.x": DOCS}}))
    loaded = world.load()
    assert not any(origin.layer.is_project for origin in loaded.list_origins(("mcp", "docs")))
    assert [
        Path(origin.layer.source).name for origin in loaded.list_origins(("mcp", "docs.x"))
    ] == ["codeloop.json"] * 2


@pytest.mark.parametrize("wrong", ["npx docs", ["docs"], 5])
def test_a_list_of_servers_in_no_known_form_is_named(world: World, wrong: object) -> None:
    world.globally({"mcpServers": wrong})
    (line,) = world.load().warnings
    assert "the MCP server mcpServers: expected an object of servers by their names" in line
