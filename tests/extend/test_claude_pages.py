"""Agents and commands in the form of Claude Code: what they become here,
and what a page that is wrong costs.
"""

import json
from pathlib import Path

import msgspec

from codeloop.extend.pages.claude_code import read_agent, read_command
from codeloop.extend.rulebook import Rulebook
from codeloop.permission.rules import decide
from codeloop.schema.permission import Need
from tests.extend.settings import settings_of, write

AGENT = """\
---
name: reviewer
description: Use this: after a change. <example>user: "look"</example>
tools: Read, Grep, Bash(git log:*), mcp__issues__find
model: sonnet
color: purple
permissionMode: plan
unheard-of: [1, 2]
---
You review.
"""
COMMAND = """\
---
argument-hint: [issue] [priority]
allowed-tools: Bash(git status:*)
model: inherit
---
# Fix an issue

Fix $1. !`git status` @README.md
"""


def verdict(tmp_path: Path, permission: str, pattern: str) -> str:
    settings = settings_of(tmp_path, trust=True)
    book = Rulebook(settings.loaded, tmp_path / "scratch")
    rules = [layer.rules for layer in book.get_layers("reviewer", "auto")]
    return decide(Need(permission=permission, patterns=(pattern,), always=()), *rules).action


def test_an_agent_has_the_tools_that_it_lists_and_the_rules_of_everybody(tmp_path: Path) -> None:
    write(tmp_path, "work/.claude/agents/any.md", AGENT)
    settings = settings_of(tmp_path, trust=True)
    own = settings.config.agent["reviewer"]
    assert (own.mode, own.model, own.color, own.prompt) == (
        "subagent",
        "sonnet",
        "purple",
        "You review.",
    )
    assert (own.description or "").startswith("Use this: after a change.")
    assert not [line for line in settings.loaded.warnings if "any.md" in line]
    needs = {
        ("read", "a.py"): "allow",
        ("read", ".env"): "ask",
        ("edit", "a.py"): "deny",
        ("webfetch", "https://example.com"): "deny",
        ("bash", "git log -3"): "allow",
        ("bash", "touch x"): "deny",
        ("issues_find", "*"): "allow",
        ("issues_close", "*"): "deny",
    }
    assert {need: verdict(tmp_path, *need) for need in needs} == needs


def test_a_command_has_a_namespace_a_hint_and_a_text(tmp_path: Path) -> None:
    write(tmp_path, "work/.claude/commands/frontend/fix.md", COMMAND)
    command = settings_of(tmp_path, trust=True).config.command["frontend:fix"]
    assert command.description == "Fix an issue [issue] [priority]"
    assert command.template.startswith("# Fix an issue")
    assert command.model is None


def test_problems_are_one_line_and_a_project_without_trust_is_only_named(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d", "e"):
        write(tmp_path, f"work/.claude/agents/{name}.md", "Only text.")
    write(tmp_path, "work/.claude/agents/reviewer.md", AGENT)
    write(tmp_path, "work/.claude/agents/README.md", "About these.")
    (line,) = [
        line for line in settings_of(tmp_path, trust=True).loaded.warnings if "Claude Code" in line
    ]
    assert "and 2 more" in line
    untrusted = settings_of(tmp_path, trust=False)
    own = untrusted.config.agent["reviewer"]
    assert (own.prompt, own.description, own.permission) == (None, None, []), "it only restricts"
    assert ".claude/agents/reviewer.md" in untrusted.loaded.ignored


def test_a_head_that_is_no_yaml_is_read_by_lines() -> None:
    text = "---\nname: x\ndescription: a: b: [c\ntools: Read\n---\nDo it."
    assert read_agent("x", text).values == {
        "mode": "subagent",
        "description": "a: b: [c",
        "only": ["read", "lsp"],
        "prompt": "Do it.",
    }
    assert read_command("a/b", "Just do $ARGUMENTS.").name == "a:b"


def test_a_plugin_folder_of_claude_code_is_a_package(tmp_path: Path) -> None:
    write(
        tmp_path,
        "own/.claude-plugin/plugin.json",
        '{"name": "own", "author": {"name": "A"}, "license": "MIT"}',
    )
    write(tmp_path, "own/agents/any.md", AGENT)
    write(tmp_path, "own/commands/fix.md", COMMAND)
    hooks = {
        "PreToolUse": [
            {
                "matcher": "Bash",
                "hooks": [{"type": "command", "command": "sh x.sh", "asyncRewake": True}],
            }
        ],
        "UserPromptExpansion": [{"hooks": [{"type": "command", "command": "sh x.sh"}]}],
    }
    write(tmp_path, "own/hooks/hooks.json", json.dumps({"description": "d", "hooks": hooks}))
    server = {"command": "${CLAUDE_PLUGIN_ROOT}/serve", "env": {"WORD": "${WORD:-none}"}}
    write(tmp_path, "own/.mcp.json", json.dumps({"mcpServers": {"words": server}}))
    settings = settings_of(tmp_path, plugin=[str(tmp_path / "own")])
    assert settings.config.agent["reviewer"].prompt == "You review."
    assert "own:fix" in settings.config.command
    (row,) = settings.config.hooks
    assert (row.event, row.matcher, row.command) == ("PreToolUse", "Bash", "sh x.sh")
    assert row.plugin_root == str(tmp_path / "own")
    assert not row.is_project
    words = msgspec.to_builtins(settings.config.mcp["words"])
    assert words["command"] == [f"{tmp_path}/own/serve"]
    assert words["environment"] == {"WORD": "{env:WORD:-none}"}
    sources = {
        origin.layer.source
        for key, origin in settings.loaded.provenance.items()
        if key.startswith("mcp.")
    }
    assert sources == {f"{tmp_path}/own/.claude-plugin/plugin.json"}
    (line,) = settings.loaded.warnings
    assert "not used of this plugin: `asyncRewake` of hooks, the event UserPromptExpansion." in line


def test_what_is_wrong_with_a_plugin_folder_costs_that_and_no_more(tmp_path: Path) -> None:
    write(
        tmp_path,
        "own/.claude-plugin/plugin.json",
        '{"name": "own", "hooks": "./more.json", "themes": {}, "lspServers": {"x": {}}}',
    )
    write(tmp_path, "own/agents/any.md", AGENT)
    wrong = {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": "long"}]}]}
    }
    write(tmp_path, "own/more.json", json.dumps(wrong))
    write(tmp_path, "own/.mcp.json", '{"words": {"args": []}, "broken"')
    settings = settings_of(tmp_path, plugin=[str(tmp_path / "own")])
    assert settings.config.agent["reviewer"].prompt == "You review."
    assert (settings.config.hooks, settings.config.mcp) == ([], {})
    said = "\n".join(settings.loaded.warnings)
    assert "expected seconds, got string" in said
    assert ".mcp.json is left out" in said
    assert "the language server x is left out: it has no `command`." in said
    assert "not used of this plugin: themes." in said


def test_a_hook_of_a_plugin_folder_that_is_incomplete_is_not_called_one_of_another_type(
    tmp_path: Path,
) -> None:
    write(tmp_path, "own/.claude-plugin/plugin.json", '{"name": "own"}')
    rows = [
        {"type": "command"},
        "x",
        {"type": "mcp_tool"},
        {"type": "command", "command": "sh x.sh"},
    ]
    write(tmp_path, "own/hooks/hooks.json", json.dumps({"hooks": {"Stop": [{"hooks": rows}]}}))
    settings = settings_of(tmp_path, plugin=[str(tmp_path / "own")])
    assert [row.command for row in settings.config.hooks] == ["sh x.sh"]
    (line,) = settings.loaded.warnings
    unused = (
        "a hook that is not an object, a hook without its `command`, hooks of the type mcp_tool"
    )
    assert f"not used of this plugin: {unused}." in line
