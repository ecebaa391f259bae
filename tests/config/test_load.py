"""Layers: their order, how they merge, where each value comes from,
and errors that name their place.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.config.forms.normalise import NormalisedValues
from codeloop.config.load import _merge_values, _MergedValues
from codeloop.config.sources import Layer, Origin, format_keys
from codeloop.kit.jsonc import Document
from codeloop.schema.config import Config
from codeloop.schema.errors import CodeloopError
from tests.config.conftest import World
from tests.support.audit_hook import add_audit


def rules(config: Config, agent: str | None = None) -> list[str]:
    found = config.agent[agent].permission if agent else config.permission
    return [f"{rule.permission} {rule.pattern} {rule.action}" for rule in found]


def test_without_any_file_the_built_in_values_hold(world: World) -> None:
    loaded = world.load()
    assert loaded.config == Config()
    assert (loaded.provenance, loaded.warnings, loaded.sources) == ({}, (), ())


def test_loading_nothing_looks_for_each_file_once_and_starts_no_process(world: World) -> None:
    place = "a/b/c/d"
    world.load(place)
    seen: list[tuple[str, str]] = []
    with add_audit(lambda event, arguments: seen.append((event, str(arguments[:1])))):
        world.load(place)
    looked = [path for event, path in seen if event == "open"]
    assert [path for path in set(looked) if looked.count(path) > 1] == []
    assert not {event for event, _ in seen} & {
        "subprocess.Popen",
        "os.exec",
        "os.posix_spawn",
        "os.fork",
    }


def test_later_layers_win_in_the_documented_order(world: World) -> None:
    def setting(name: str) -> dict[str, Any]:
        return {"username": name, "provider": {name: {"name": name}}}

    reference, config = world.paths.opencode_config, world.paths.config
    files = [
        *(reference / "config.json", reference / "opencode.json", reference / "opencode.jsonc"),
        *(config / "codeloop.json", config / "codeloop.jsonc"),
    ]
    given_file = world.top / "given.json"
    inner = [
        *("opencode.json", "opencode.jsonc", "codeloop.json", "codeloop.jsonc"),
        *("sub/opencode.json", "sub/codeloop.jsonc"),
        *(
            ".opencode/opencode.json",
            ".opencode/opencode.jsonc",
            ".codeloop/codeloop.json",
            ".codeloop/codeloop.jsonc",
        ),
        *("sub/.opencode/opencode.json", "sub/.codeloop/codeloop.json"),
    ]
    order: list[str] = []
    expected: list[str] = []

    def check(name: str, **more: Any) -> None:
        order.append(name)
        loaded = world.load("sub", **more)
        assert list(loaded.config.provider) == order
        assert loaded.config.username == name
        assert list(loaded.sources) == expected

    for index, file in enumerate(files):
        expected.append(str(world.write(file, setting(f"global{index}"))))
        check(f"global{index}")
    world.write(given_file, setting("given"))
    expected.append(str(given_file))
    check("given", config_file=given_file)
    environment = {
        "CODELOOP_CONFIG": str(given_file),
        "OPENCODE_CONFIG_CONTENT": json.dumps(setting("theirs")),
    }
    expected.append("OPENCODE_CONFIG_CONTENT")
    check("theirs", environment=environment)
    environment["CODELOOP_CONFIG_CONTENT"] = json.dumps(setting("ours"))
    expected.append("CODELOOP_CONFIG_CONTENT")
    check("ours", environment=environment)
    for index, file in enumerate(inner):
        expected.append(str(world.write(file, setting(f"project{index}"))))
        check(f"project{index}", environment=environment)
    expected.append("the command line")
    check("last", environment=environment, command_line=setting("last"))


def test_a_sibling_s_or_a_parent_s_files_are_not_read(world: World) -> None:
    world.write("other/codeloop.json", {"username": "other"})
    world.write(world.top / "codeloop.json", {"username": "above"})
    assert world.load("sub").config.username is None


def test_objects_merge_and_lists_replace(world: World) -> None:
    world.globally(
        {
            "provider": {"x": {"name": "X", "options": {"baseURL": "http://a", "keep": 1}}},
            "server": {"cors": ["a"]},
        }
    )
    world.write(
        "codeloop.json",
        {"provider": {"x": {"options": {"baseURL": "http://b"}}}, "server": {"cors": ["b"]}},
    )
    config = world.load().config
    assert config.provider["x"].options == {"baseURL": "http://b", "keep": 1}
    assert config.provider["x"].name == "X"
    assert config.server.cors == ["b"]


def test_instructions_and_plugins_are_gathered_once_each(world: World) -> None:
    world.globally({"instructions": ["a.md", "b.md"], "plugin": ["p", ["q", {"x": 1}]]})
    world.write(
        "opencode.json", {"instructions": ["b.md", "c.md"], "plugin": [["q", {"x": 1}], "r"]}
    )
    config = world.load().config
    assert config.instructions == ["a.md", "b.md", "c.md"]
    assert config.plugin == ["p", ["q", {"x": 1}], "r"]


def test_permission_takes_every_form_and_keeps_its_order(world: World) -> None:
    world.globally({"permission": "ask", "tools": {"bash": False, "write": True}})
    world.write(
        "opencode.json",
        {"permission": {"bash": {"*": "ask", "git *": "allow"}, "webfetch": "deny"}},
    )
    assert rules(world.load().config) == [
        *(
            "bash * deny",
            "edit * allow",
            "* * ask",
            "bash * ask",
            "bash git * allow",
            "webfetch * deny",
        )
    ]


def test_an_agent_s_old_forms_are_read(world: World) -> None:
    world.globally(
        {
            "mode": {"build": {"temperature": 0.5, "tools": {"patch": False}}},
            "agent": {
                "build": {"maxSteps": 7, "permission": {"bash": "ask"}, "reasoningEffort": "high"}
            },
        }
    )
    loaded = world.load()
    agent = loaded.config.agent["build"]
    assert (agent.mode, agent.temperature, agent.steps) == ("primary", 0.5, 7)
    assert agent.options == {"reasoningEffort": "high"}
    assert rules(loaded.config, "build") == ["edit * deny", "bash * ask"]
    assert loaded.warnings == ()
    assert loaded.provenance["agent.build.steps"].keys == ("agent", "build", "maxSteps")
    assert loaded.provenance["agent.build.temperature"].keys == ("mode", "build", "temperature")
    assert loaded.provenance["agent.build.permission[0]"].keys == (
        "mode",
        "build",
        "tools",
        "patch",
    )


def test_other_old_keys_are_read(world: World) -> None:
    world.globally({"autoshare": True, "logLevel": "DEBUG"})
    config = world.load().config
    assert (config.share, config.log_level) == ("auto", "DEBUG")


def test_keys_of_the_reference_that_do_nothing_yet_are_named_in_one_line(world: World) -> None:
    model = {
        "family": "f",
        "release_date": "2025",
        "status": "beta",
        "interleaved": "reasoning",
        "variants": {"a": {}},
    }
    passed_over = {
        "theme": "x",
        "keybinds": {"leader": "ctrl+x"},
        "tui": {"scroll_speed": 3},
        "layout": "auto",
    }
    passed_over |= {"enterprise": {}, "attachment": {}, "references": {}, "subagent_depth": 2}
    cost = {"input": 1, "output": 2, "context_over_200k": {"input": 2, "output": 4}}
    world.globally(
        {
            "$schema": "https://example.com/config.json",
            **passed_over,
            "provider": {
                "x": {
                    "id": "x",
                    "models": {"m": {**model, "cost": cost, "limit": {"context": 1, "output": 1}}},
                }
            },
            "server": {"mdns": True, "port": 1},
            "compaction": {"tail_turns": 2},
            "experimental": {"anything": True},
            "mcp": {"m": {"enabled": False}},
        }
    )
    loaded = world.load()
    (line,) = loaded.warnings
    assert line.startswith("Not supported yet and ignored: experimental.anything (")
    named = re.findall(r"[ ,]([\w.$]+) \(", line.partition(":")[2].partition(" Instead of ")[0])
    assert named == [
        *(
            "experimental.anything",
            "subagent_depth",
            "theme",
            "keybinds",
            "tui",
            "layout",
            "compaction.tail_turns",
        ),
        "server.mdns",
    ]
    assert loaded.config.provider["x"].models["m"].interleaved == "reasoning"


def test_an_unknown_key_is_a_warning_that_names_its_place(world: World) -> None:
    file = world.globally(
        '{\n  "modle": "x/y",\n  "provider": {"x": {"models": {"a.b": {\n "limits": {}}}}}\n}'
    )
    assert world.load().warnings == (
        f"{file}:2:3: unknown key modle, ignored. Did you mean `model` or `mode`?",
        f'{file}:4:2: unknown key provider.x.models["a.b"].limits, ignored. Did you mean `limit`?'.replace(
            '"', "'"
        ),
    )


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"instructions": ["AGENTS.md", "https://example.com/rules.md"]}, "instructions[1]"),
        ({"skills": {"urls": ["https://example.com"]}}, "skills.urls"),
        ({"autoupdate": "notify"}, "autoupdate"),
        ({"share": "auto"}, "share"),
        ({"autoshare": True}, "autoshare"),
        ({"compaction": {"prune": False}}, "compaction.prune"),
    ],
)
def test_what_is_not_supported_yet_is_named_with_its_place(
    world: World, settings: dict[str, Any], name: str
) -> None:
    file = world.globally(settings)
    (warning,) = world.load().warnings
    said = warning.partition(" Instead of ")[0]
    assert said == f"Not supported yet and ignored: {name} ({file}:1:{_column(file, name)})."


def _column(file: Path, name: str) -> int:
    text = file.read_text()
    last = "https://example.com/rules.md" if name.endswith("]") else name.rpartition(".")[2]
    return text.index(f'"{last}"') + 1


@pytest.mark.parametrize(
    "settings",
    [
        {
            "mcp": {},
            "plugin": [],
            "lsp": False,
            "formatter": False,
            "autoupdate": False,
            "share": "disabled",
        },
        {
            "share": "manual",
            "compaction": {"prune": True},
            "instructions": ["AGENTS.md"],
            "skills": {"paths": []},
        },
    ],
)
def test_what_asks_for_nothing_is_not_named(world: World, settings: dict[str, Any]) -> None:
    world.globally(settings)
    assert world.load().warnings == ()


@pytest.mark.parametrize(
    ("settings", "key", "near"),
    [
        ({"permision": {"bash": "ask"}}, "permision", "permission"),
        ({"compaction": {"reservd": 3}}, "compaction.reservd", "reserved"),
        ({"search": {"provider": "exa", "api_key": "x"}}, "search.api_key", "apiKey"),
        ({"provider": {"x": {"optoins": {}}}}, "provider.x.optoins", "options"),
        (
            {"provider": {"x": {"options": {"baseUrl": "y"}}}},
            "provider.x.options.baseUrl",
            "baseURL",
        ),
        ({"permission": {"bahs": "deny"}}, "permission.bahs", "bash"),
        ({"agent": {"build": {"promt": "x"}}}, "agent.build.promt", "prompt"),
        (
            {"agent": {"build": {"permission": {"edti": "deny"}}}},
            "agent.build.permission.edti",
            "edit",
        ),
        ({"tools": {"wrte": False}}, "tools.wrte", "write"),
        ({"permission": {"Bash": "allow"}}, "permission.Bash", "bash"),
        ({"permission": {"write_file": "allow"}}, "permission.write_file", "write"),
        ({"permission": {"str_replace_editor": "allow"}}, "permission.str_replace_editor", "edit"),
        ({"tools": {"run_shell_command": True}}, "tools.run_shell_command", "bash"),
        ({"agent": {"build": {"tools": {"wrte": False}}}}, "agent.build.tools.wrte", "write"),
        (
            {"permissions": [{"action": "shel", "effect": "deny"}]},
            "permissions[0].action 'shel' means",
            "shell",
        ),
    ],
)
def test_a_misspelt_key_brings_the_one_that_is_meant(
    world: World, settings: dict[str, Any], key: str, near: str
) -> None:
    world.globally(settings)
    (line,) = world.load().warnings
    assert key in line
    assert line.endswith(f" Did you mean `{near}`?")


def test_options_of_a_model_and_tools_of_others_are_no_misspellings(world: World) -> None:
    agent = {"top_k": 3, "reasoningEffort": "high", "permission": {"github_issues": "ask"}}
    world.globally({"agent": {"build": agent}, "permission": {"mytool*": "deny"}})
    assert world.load().warnings == ()


@pytest.mark.parametrize(
    "name",
    [
        *("task_output", "bash_kill", "fetch", "view", "ls", "patch", "subagent", "bash*", "*"),
        *("Bash", "Edit", "WebFetch", "run_shell_command", "apply_patch", "str_replace_editor"),
        *("Skill", "Web*", "BashTool", "PowerShell", "shell_command", "Sandbox", "mcp__*"),
    ],
)
def test_a_name_of_a_tool_that_a_rule_holds_for_is_not_warned_of(world: World, name: str) -> None:
    agent = {"permission": {name: "deny"}, "tools": {name: False}}
    rules = [{"action": name, "effect": "deny"}]
    world.globally(
        {
            "permission": {name: "deny"},
            "tools": {name: False},
            "permissions": rules,
            "agent": {"x": agent},
        }
    )
    assert world.load().warnings == ()


def test_nobody_can_set_restrictions_by_name(world: World) -> None:
    world.globally({"restrictions": [{"permission": "*", "pattern": "*", "action": "deny"}]})
    loaded = world.load()
    assert loaded.config.restrictions == []
    assert "unknown key restrictions" in loaded.warnings[0]


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ('{"a": 1', "1:8", "expected ',' or '}', found the end of the text"),
        ("", "1:1", "expected a value"),
        ("[]", "1:1", "expected an object in braces"),
        ('{\n "model": 3\n}', "2:11", "model: expected string, got integer"),
        (
            '{"share":\n"never"}',
            "2:1",
            'share: expected "manual" or "auto" or "disabled", got \'never\'',
        ),
        ('{"snapshot": null}', "1:14", "snapshot: expected true or false, got null"),
        (
            '{"permission": {\n"bash": "maybe"}}',
            "2:9",
            'permission.bash: expected "allow", "ask" or "deny", or an',
        ),
        ('{"permission": {"bash":\n {"git *": 1}}}', "2:12", "permission.bash['git *']: expected"),
        ('{"permission": 1}', "1:16", "permission: expected"),
        ('{"tools": {"bash": "no"}}', "1:20", "tools.bash: expected true or false"),
        ('{"agent": {"b": []}}', "1:17", "agent.b: expected an object, got list"),
        (
            '{"agent": {"b":\n{"maxSteps": "7"}}}',
            "2:14",
            "agent.b.steps: expected integer, got string",
        ),
        ('{"command": {"c":\n {"agent": "x"}}}', "2:2", "command.c: the key template is missing"),
        ('{"instructions": "a.md"}', "1:18", "instructions: expected list, got string"),
        ('{"instructions": ["a.md",\n 3]}', "2:2", "instructions[1]: expected string, got integer"),
        (
            '{"provider": {"x": {"name": {\n"a": 1}}}}',
            "1:29",
            "provider.x.name: expected string, got object",
        ),
        (
            '{"provider": {"x": {"models": {"y.z": {"limit": {\n  "context": "big"}}}}}}',
            "2:14",
            "provider.x.models['y.z'].limit.context: expected integer, got string",
        ),
    ],
)
def test_an_error_names_file_line_and_column(
    world: World, text: str, place: str, expected: str
) -> None:
    file = world.globally(text)
    with pytest.raises(CodeloopError) as caught:
        world.load()
    assert str(caught.value).startswith(f"{file}:{place}: ")
    assert expected in str(caught.value)
    assert file.read_text() == text


def test_an_error_in_a_merged_value_names_the_layer_that_set_it(world: World) -> None:
    world.globally(
        {"provider": {"x": {"name": "fine", "models": {"m": {"limit": {"context": 1}}}}}}
    )
    file = world.write(
        "codeloop.jsonc", '{"provider": {"x": {"models": {"m": {\n"limit": {"context": 1.5}}}}}}'
    )
    with pytest.raises(
        CodeloopError, match=re.escape(f"{file}:2:22: provider.x.models.m.limit.context")
    ):
        world.load()


def test_errors_name_the_variable_and_the_command_line_too(world: World) -> None:
    with pytest.raises(CodeloopError, match=r"^CODELOOP_CONFIG_CONTENT:1:2: expected a key"):
        world.load(environment={"CODELOOP_CONFIG_CONTENT": "{"})
    with pytest.raises(CodeloopError, match=r"^the command line: model: expected string"):
        world.load(command_line={"model": 1})


def test_files_that_can_not_be_read_are_clear_errors(world: World) -> None:
    file = world.paths.config / "codeloop.json"
    file.parent.mkdir(parents=True)
    file.symlink_to(file)
    with pytest.raises(CodeloopError, match=r"codeloop.json can't be read: Too many levels"):
        world.load()
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(CodeloopError, match="not a regular file"):
        world.load()
    file.unlink()
    file.write_bytes(b'{\n"model": "\xff"}')
    with pytest.raises(CodeloopError, match=r"codeloop.json:2: not UTF-8"):
        world.load()
    file.write_text(" " * 1024 * 1024 + "{}")
    with pytest.raises(CodeloopError, match="larger than 1,048,576 bytes"):
        world.load()


def test_a_named_file_that_is_missing_is_an_error(world: World) -> None:
    with pytest.raises(CodeloopError, match=r"missing.json does not exist"):
        world.load(config_file=Path("missing.json"))
    with pytest.raises(CodeloopError, match=r"missing.json does not exist"):
        world.load(environment={"CODELOOP_CONFIG": "missing.json"})


def test_a_file_where_a_folder_could_be_is_passed_over(world: World) -> None:
    world.write(".opencode", "not a folder")
    assert world.load().sources == ()


def test_dot_env_files_are_never_loaded(world: World) -> None:
    world.write(".env", 'CODELOOP_CONFIG_CONTENT={"username": "evil"}\nNAME=evil')
    world.write("codeloop.json", {"username": "{env:NAME}"})
    assert world.load().config.username == ""


KEYS = st.sampled_from(["a", "b", "c.d", "é"])
TREES = st.dictionaries(
    KEYS,
    st.recursive(
        st.integers() | st.lists(st.integers(), max_size=2),
        lambda s: st.dictionaries(KEYS, s, max_size=3),
    ),
)


@pytest.mark.slow
@given(st.lists(TREES, max_size=4))
def test_provenance_names_the_layer_that_holds_each_value(trees: list[dict[str, Any]]) -> None:
    layers = [
        Layer(str(n), str(n), Path("/"), Document(json.dumps(tree), tree))
        for n, tree in enumerate(trees)
    ]
    merged = _MergedValues()
    for layer in layers:
        _merge_values(merged, merged.values, NormalisedValues(layer, layer.raw), layer.raw, ())

    def leaves(value: Any, keys: tuple[str, ...]) -> set[tuple[str, ...]]:
        if isinstance(value, dict) and value:
            return {leaf for key, inner in value.items() for leaf in leaves(inner, (*keys, key))}
        return {keys} if keys else set()

    def at(value: Any, keys: tuple[str | int, ...]) -> Any:
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    assert set(merged.origins) == leaves(merged.values, ())
    assert len({format_keys(keys) for keys in merged.origins}) == len(merged.origins)
    for keys, origin in merged.origins.items():
        assert at(origin.layer.raw, keys) == at(merged.values, keys)
        for later in layers[int(origin.layer.name) + 1 :]:
            assert at(later.raw, keys) in (None, {})
    assert [layer.raw for layer in layers] == trees


def test_what_can_not_be_shown_safely_is_escaped_in_names(world: World) -> None:
    assert (
        format_keys(("a", "b.c", 0, "x\x1b[31m", "\u202e")) == r"a['b.c'][0]['x\x1b[31m']['\u202e']"
    )
    origin = Origin(Layer("x", "file", Path("/"), Document('{\n"a": 1}', {"a": 1})), ("a",))
    assert str(origin) == "file:2:6"


def test_a_configuration_file_that_leads_nowhere_is_named(world: World) -> None:
    # The rules in it were meant to hold.
    link = world.root / "codeloop.json"
    link.symlink_to("dotfiles/codeloop.json")
    with pytest.raises(
        CodeloopError,
        match=r"codeloop\.json is a link to dotfiles/codeloop\.json, which is not there",
    ):
        world.load()
    (world.root / "dotfiles").mkdir()
    (world.root / "dotfiles" / "codeloop.json").write_text("{}")
    assert world.load().warnings == ()
