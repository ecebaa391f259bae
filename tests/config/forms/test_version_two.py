"""What restricts in the shape of OpenCode 2, or of Claude Code, is enforced or refused,
trusted or not.
"""

import json
from typing import Any

import pytest

from codeloop.config.sources import ExtraLayers, Layer
from codeloop.extend.agents import build_agents, build_rules, list_restrictions
from codeloop.kit.jsonc import Document
from codeloop.permission.rules import RuleLayer, judge_need, restrict
from codeloop.schema.config import Config
from codeloop.schema.errors import CodeloopError
from codeloop.schema.permission import Need, PermissionRule
from tests.config.conftest import World

BASE = (PermissionRule(permission="*", pattern="*", action="allow"),)


def judge(config: Config, permission: str, pattern: str = "a", agent: str = "build") -> str:
    own = RuleLayer("own", (*BASE, *build_rules(config, agent, BASE)))
    lists = restrict([(own,)], RuleLayer("project", list_restrictions(config, agent)))
    return judge_need(Need(permission=permission, patterns=(pattern,)), lists)[0].action


def deny(action: str, resource: str = "*") -> dict[str, str]:
    return {"action": action, "resource": resource, "effect": "deny"}


@pytest.mark.parametrize("place", ["global", "untrusted", "trusted"])
@pytest.mark.parametrize(
    ("settings", "permission", "pattern", "agent"),
    [
        ({"permissions": [deny("shell")]}, "bash", "ls", "build"),
        ({"permissions": [deny("subagent")]}, "task", "explore", "build"),
        ({"permissions": [deny("write")]}, "edit", "a", "build"),
        ({"permissions": [deny("*"), {"action": "read", "effect": "allow"}]}, "edit", "a", "build"),
        ({"permissions": [deny("edit", "locked/*")]}, "edit", "locked/a", "build"),
        ({"permissions": {"bash": "deny"}}, "bash", "ls", "build"),
        ({"permissions": "deny"}, "bash", "ls", "build"),
        ({"permissions": {"deny": ["Bash(rm:*)"], "allow": ["Bash"]}}, "bash", "rm a", "build"),
        ({"permissions": {"deny": ["mcp__*"]}}, "docs_search", "*", "build"),
        ({"agents": {"build": {"permissions": [deny("shell")]}}}, "bash", "ls", "build"),
        ({"agent": {"build": {"permissions": [deny("shell")]}}}, "bash", "ls", "build"),
        ({"agents": {"build": {"permission": {"bash": "deny"}}}}, "bash", "ls", "build"),
        ({"policies": [deny("tool.use", "shell")]}, "bash", "ls", "build"),
        (
            {"experimental": {"policies": [deny("tool.use", "webfetch")]}},
            "webfetch",
            "http://x",
            "build",
        ),
        ({"websearch": False}, "websearch", "x", "build"),
        ({"permission": {"shell": "deny"}}, "bash", "ls", "build"),
        ({"permission": {"write": "deny"}}, "edit", "a", "build"),
        ({"tools": {"patch": False}}, "edit", "a", "build"),
    ],
)
def test_what_denies_is_denied(
    world: World, settings: dict[str, Any], permission: str, pattern: str, agent: str, place: str
) -> None:
    if place == "global":
        world.globally(settings)
    else:
        world.write("opencode.json", settings)
    loaded = world.load(trusted=place == "trusted")
    assert judge(loaded.config, permission, pattern, agent) == "deny"
    assert not [line for line in loaded.warnings if "unknown key permissions" in line]


@pytest.mark.parametrize("action", ["allow", "deny"])
def test_a_rule_for_the_tools_of_all_servers_is_about_no_permission_of_ours(
    world: World, action: str
) -> None:
    rules = {"external_directory": "ask"}
    world.globally({"permission": rules, "permissions": {action: ["mcp__*"]}})
    assert judge(world.load().config, "external_directory", "/x") == "ask"


def test_what_allows_counts_in_the_users_own_configuration_and_not_in_an_untrusted_projects(
    world: World,
) -> None:
    allowing = {"permissions": [{"action": "shell", "resource": "ls *", "effect": "allow"}]}
    world.globally({"permission": {"bash": "ask"}, **allowing})
    assert judge(world.load(trusted=False).config, "bash", "ls x") == "allow"
    world.globally({"permission": {"bash": "ask"}})
    world.write("opencode.json", allowing)
    loaded = world.load(trusted=False)
    assert judge(loaded.config, "bash", "ls x") == "ask"
    assert "permissions[0] (allow)" in loaded.warnings[-1]


@pytest.mark.parametrize("trusted", [True, False])
def test_what_is_disabled_is_off(world: World, *, trusted: bool) -> None:
    world.globally(
        {
            "mcp": {"servers": {"mine": {"type": "remote", "url": "https://x"}}},
            "provider": {"p": {"blacklist": ["a"]}},
        }
    )
    world.write(
        "opencode.json",
        {
            "agents": {"plan": {"disabled": True}},
            "mcp": {"timeout": {"startup": 1}, "servers": {"mine": {"disabled": True}}},
            "providers": {"q": {"disabled": True}, "p": {"models": {"b": {"disabled": True}}}},
            "policies": [deny("provider.use", "r")],
        },
    )
    config = world.load(trusted=trusted).config
    assert "plan" not in build_agents(config, BASE)
    assert config.mcp["mine"]["enabled"] is False
    assert set(config.mcp) == {"mine"}
    assert set(config.disabled_providers) == {"q", "r"}
    assert config.provider["p"].blacklist == (["b"] if trusted else ["a", "b"])


def test_policies_leave_the_providers_that_they_allow(world: World) -> None:
    allow = {"action": "provider.use", "resource": "a", "effect": "allow"}
    world.globally({"policies": [deny("provider.use"), allow]})
    assert world.load().config.enabled_providers == ["a"]


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"permissions": [{"action": "shell", "effect": "forbid"}]},
            r"permissions\[0\]\.effect: expected",
        ),
        ({"permissions": ["shell"]}, r"permissions\[0\]: expected an object"),
        ({"permissions": 3}, "permissions: expected"),
        (
            {"policies": [deny("integration.use", "github")]},
            "can't express a policy that says deny",
        ),
        (
            {"policies": [deny("provider.use", "open*")]},
            "can't express a policy that denies the providers",
        ),
        ({"policies": {"a": 1}}, "expected a list of policies"),
        ({"plugins": ["-guard"]}, "can't express '-guard'"),
        (
            {"agents": {"build": {"permissions": [{"effect": "deny"}]}}},
            r"agents\.build\.permissions\[0\]: expected",
        ),
    ],
)
def test_what_can_not_be_read_is_refused_with_its_place(
    world: World, settings: dict[str, Any], says: str, *, trusted: bool
) -> None:
    world.write("opencode.json", settings)
    with pytest.raises(CodeloopError, match=says) as error:
        world.load(trusted=trusted)
    assert "opencode.json:1:" in str(error.value)


def test_a_settings_file_that_is_named_for_its_hooks_denies_what_it_denies(world: World) -> None:
    file = world.root.parent / "settings.json"
    rules = {"allow": ["Bash(rm:*)"], "deny": ["Read(secret/**)"], "ask": ["WebFetch"]}
    file.write_text(json.dumps({"hooks": {}, "permissions": rules}))
    world.globally({"permission": {"bash": "ask"}, "hooks": str(file)})
    config = world.load().config
    needs = (("read", "secret/a"), ("read", "a"), ("webfetch", "x"), ("bash", "rm a"))
    assert [judge(config, *need) for need in needs] == ["deny", "allow", "ask", "ask"]


def test_a_question_of_an_extension_lifts_no_denial(world: World) -> None:
    world.globally({"permission": {"bash": "allow", "read": "deny"}})
    values = {
        "permission": {"read": "ask", "bash": "ask"},
        "agent": {"build": {"permission": {"edit": "deny"}}},
    }
    layer = Layer("extensions", "an extension", world.root, Document("", values))
    config = world.load(extra=ExtraLayers((layer,))).config
    assert [judge(config, name) for name in ("read", "bash", "edit")] == ["deny", "ask", "deny"]
    assert judge(config, "edit", agent="plan") == "allow"
