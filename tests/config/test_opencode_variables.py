"""Variables of OpenCode that have a counterpart count,
and settings without one name what to do instead.
"""

import json
from pathlib import Path

import pytest

from codeloop.model.catalog.refresh import is_refresh_due
from codeloop.schema.errors import CodeloopError
from codeloop.tool.search_providers import choose_provider
from tests.config.conftest import World


def test_the_default_timeout_of_commands_comes_from_its_variable(world: World) -> None:
    world.globally({"commands": {"timeout": 5_000, "max_timeout": 900_000}})
    name = "OPENCODE_EXPERIMENTAL_BASH_DEFAULT_TIMEOUT_MS"
    config = world.load(environment={name: "300000"}).config
    assert (config.commands.timeout, config.commands.max_timeout) == (300_000, 900_000)
    for wrong in ("", "0", "soon", "-1"):
        assert world.load(environment={name: wrong}).config.commands.timeout == 5_000


def test_rules_of_its_variable_are_the_last_of_all_files(world: World) -> None:
    world.globally({"permission": {"bash": "allow", "webfetch": "allow"}})
    world.write("codeloop.json", {"permission": {"bash": "allow"}})
    variables = {"OPENCODE_PERMISSION": '{"bash": {"*": "deny"}, "write": "ask"}'}
    rules = world.load(environment=variables).config.permission
    last = [(rule.permission, rule.action) for rule in rules[-2:]]
    assert last == [("bash", "deny"), ("write", "ask")]


@pytest.mark.parametrize("wrong", ['{"bash": "deny"', "[1]", "3", '"sometimes"'])
def test_rules_of_its_variable_that_can_t_be_read_are_an_error(world: World, wrong: str) -> None:
    with pytest.raises(CodeloopError, match="OPENCODE_PERMISSION"):
        world.load(environment={"OPENCODE_PERMISSION": wrong})


@pytest.mark.parametrize(
    ("value", "is_on"), [("1", False), ("TRUE", False), ("0", True), ("", True)]
)
def test_its_switch_ends_automatic_summaries(world: World, value: str, is_on: bool) -> None:
    loaded = world.load(environment={"OPENCODE_DISABLE_AUTOCOMPACT": value})
    assert loaded.config.compaction.auto is is_on


def test_its_switches_of_the_catalog_count_where_ours_are_not_set(tmp_path: Path) -> None:
    assert is_refresh_due(tmp_path, {})
    assert not is_refresh_due(tmp_path, {"OPENCODE_DISABLE_MODELS_FETCH": "1"})
    ours = {"CODELOOP_DISABLE_MODELS_FETCH": "0", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    assert is_refresh_due(tmp_path, ours)


@pytest.mark.parametrize(("value", "chosen"), [("1", "exa"), ("true", "exa"), ("0", ""), ("", "")])
def test_exa_is_switched_on_as_in_opencode(value: str, chosen: str) -> None:
    found = choose_provider(None, {"OPENCODE_ENABLE_EXA": value})
    assert (found.id if found else "") == chosen
    with_key = choose_provider(None, {"OPENCODE_ENABLE_EXA": value, "TAVILY_API_KEY": "x"})
    assert with_key is not None
    assert with_key.id == "tavily"


@pytest.mark.parametrize(
    ("settings", "way"),
    [
        ({"experimental": {"batch_tool": True}}, '"permission": {"batch": "allow"}'),
        ({"experimental": {"primary_tools": ["bash"]}}, "agent.NAME.permission"),
        ({"skills": {"urls": ["https://a.example"]}}, "skills.paths"),
        ({"keybinds": {"leader": "ctrl+x"}}, "tui.json"),
        ({"share": "auto"}, "codeloop share"),
        ({"instructions": ["https://a.example/x.md"]}, "save the page as a file"),
    ],
)
def test_what_is_not_supported_names_the_way_that_exists(
    world: World, settings: dict[str, object], way: str
) -> None:
    world.globally(settings)
    (warning,) = world.load().warnings
    assert "Not supported yet and ignored: " in warning
    assert way in warning, json.dumps(warning)
