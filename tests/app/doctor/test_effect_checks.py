"""`codeloop doctor` and `debug config` say what is configured and can never act, and why."""

import json
from pathlib import Path

import pytest

from tests.cli.program import Desk

SILENT = {
    "an absolute path of the project": (
        {"permission": {"read": {"{work}/src/**": "deny"}}},
        "named from its top",
    ),
    "a later rule": (
        {"permission": {"bash": {"rm": "deny", "*": "allow"}}},
        "bash *: allow, after it, does",
    ),
    "a name of another program": (
        {"permission": {"Bash(rm *)": "deny"}},
        "Bash rm *: deny",
    ),
    "the tool that it means": ({"permission": {"WebFetch": "deny"}}, "is read as webfetch"),
    "the tools of all servers": (
        {"permission": {"mcp__*": "deny"}},
        "is read as *_*, of the tools of MCP servers alone. It holds.",
    ),
    "a matcher": (
        {
            "hooks": {
                "PreToolUse": [
                    {"matcher": "Bahs", "hooks": [{"type": "command", "command": "true"}]}
                ]
            }
        },
        "'Bahs' matches no tool",
    ),
    "an import": ({}, "@gone.md does not exist"),
    "a skill": ({"permission": {"skill": {"pdf": "deny"}}}, "pdf is denied by a rule"),
}
ACTIVE = {
    "permission": {"bash": {"*": "ask", "rm": "deny"}, "read": {"./src/": "deny"}},
    "hooks": {
        "PreToolUse": [{"matcher": "Bash|Edit", "hooks": [{"type": "command", "command": "true"}]}]
    },
}


def make_desk(folder: Path, settings: object) -> Desk:
    desk = Desk(folder)
    (desk.work / "src").mkdir()
    (desk.work / "src/a.py").touch()
    skill = desk.home / "config/skill/pdf/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: pdf\ndescription: d\n---\nx")
    values = json.loads(json.dumps(settings).replace("{work}", str(desk.work)))
    desk.configure(**values)
    return desk


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "told"), SILENT.values(), ids=SILENT)
def test_what_can_never_act_is_named(
    tmp_path: Path, settings: dict[str, object], told: str
) -> None:
    desk = make_desk(tmp_path, settings)
    if not settings:
        (desk.work / "CLAUDE.md").write_text("@gone.md")
    assert told in " ".join(desk.run("doctor").stdout.split())
    shown = desk.run("debug", "config")
    assert told in shown.stderr
    assert json.loads(shown.stdout)


HOOK = {"type": "command", "command": "true"}
PROJECT_NAMES = {
    "permission": {
        "gonetool": "deny",
        "skill": {"nothing": "deny"},
        "task": {"stranger": "deny"},
    },
    "hooks": {"PreToolUse": [{"matcher": "mcp__gone__list", "hooks": [HOOK]}]},
}
NAMES = {
    "default_agent": "nobody",
    "command": {
        "rev": {"template": "x", "agent": "no-one"},
        "big": {"template": "x", "model": "fake/gone"},
        "undo": {"template": "x"},
    },
    "agent": {"reviewer": {"description": "d", "model": "fake/lost"}},
    "subagents": {"model": "fake/away"},
    "permission": {
        "skill": {"pfd": "deny"},
        "task": {"reviewwer": "deny"},
        "note": "ask",
        "notes_*": "deny",
    },
    "mcp": {"notes": {"type": "local", "command": ["true"]}},
    "disabled_providers": ["antropic"],
    "provider": {
        "empty": {"npm": "@ai-sdk/openai-compatible"},
        "odd": {"npm": "@ai-sdk/nothing", "models": {"m": {}}},
    },
    "formatter": {
        "rufff": {"disabled": True},
        "mine": {"command": ["no-such-formatter"], "extensions": [".xyz"]},
        "aimless": {"command": ["cat"]},
    },
    "lsp": {"pyrigth": {"disabled": True}},
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "/no/hook.sh --fix"}]},
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "no-such-program"}]},
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "./plain.sh"}]},
            {"matcher": "mcp__nots__list", "hooks": [HOOK]},
            {"matcher": "Write"},
        ],
        "Stop": [{"matcher": "Bash", "hooks": [HOOK]}],
        "SessionStart": [{"matcher": "startpu", "hooks": [HOOK]}],
    },
}
TOLD_NAMES = (
    "default_agent names no agent that you can talk to: nobody",
    "command.rev.agent names no agent: no-one",
    "command.big.model: There is no provider `fake`",
    "agent.reviewer.model: There is no provider `fake`",
    "subagents.model: There is no provider `fake`",
    "The command undo can't be called: /undo is one of the program's",
    "gonetool *: deny is about no tool",
    "permission.skill names no skill: nothing",
    "permission.task names no agent: stranger",
    "mcp.notes: a rule denies all its tools",
    "disabled_providers names no provider: antropic. Did you mean `anthropic`?",
    "provider.empty has no model",
    "provider.odd: codeloop speaks no protocol of @ai-sdk/nothing",
    "formatter.rufff names no formatter: rufff. Did you mean `ruff`?",
    "formatter.mine: no-such-formatter is not on the PATH",
    "formatter.aimless is for no file",
    "lsp.pyrigth names no language server: pyrigth",
    "/no/hook.sh does not exist",
    "no-such-program is not on the PATH",
    "plain.sh is not executable",
    "'mcp__gone__list' names no MCP server",
    "permission.skill names no skill: pfd. Did you mean `pdf`?",
    "permission.task names no agent: reviewwer. Did you mean `reviewer`?",
    "note *: ask is about no tool",
    "'mcp__nots__list' names no MCP server",
    "hooks.PreToolUse[4] has nothing in `hooks`",
    "Stop takes no matcher",
    "'startpu' matches nothing",
    "tool/count.sh is not read: it is not executable",
    "command/q.txt is not read",
    "skill/lower is not read: there is no SKILL.md in it",
    "skill/gone is not read: it is a link to nothing",
    "CLAUDE.md is not read, since",
)


@pytest.mark.slow
def test_each_name_that_stands_for_nothing_is_named(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, NAMES)
    config = desk.home / "config"
    for name in ("tool/count.sh", "command/q.txt", "skill/lower/skill.md"):
        (config / name).parent.mkdir(parents=True, exist_ok=True)
        (config / name).write_text("x")
    (config / "skill/gone").symlink_to("nowhere")
    (desk.work / "plain.sh").write_text("exit 0")
    (desk.work / "AGENTS.md").write_text("Be brief.")
    (desk.work / "CLAUDE.md").write_text("Be long.")
    (desk.work / "codeloop.json").write_text(json.dumps(PROJECT_NAMES))
    assert desk.run("trust").returncode == 0
    shown = " ".join(desk.run("debug", "config").stderr.split())
    assert [told for told in TOLD_NAMES if told not in shown] == []


def make_hooks(*commands: str) -> list[dict[str, str]]:
    return [{"type": "command", "command": command} for command in commands]


USUAL = {
    "enabled_providers": ["anthropic"],
    "agent": {"reviewer": {"description": "d", "model": "openai/gpt-5"}},
    "permission": {
        "playwright": "ask",
        "puppeteer*": "ask",
        "skill": {"release-notes": "deny"},
        "task": {"translator": "deny"},
    },
    "hooks": {
        "Stop": [{"matcher": ".*", "hooks": [HOOK]}, {"matcher": "*", "hooks": [HOOK]}],
        "UserPromptSubmit": [{"matcher": "^.*$", "hooks": [HOOK]}],
        "PreToolUse": [
            {"matcher": "mcp__memory__.*", "hooks": [HOOK]},
            {
                "matcher": ".*",
                "hooks": make_hooks(
                    *("command -v jq", "source x.sh", ". x.sh", "type jq", "trap true EXIT"),
                    *("return 0", "local a", "unset A", "shift", "wait", "umask 077"),
                    *("ulimit -n", "alias a=b", "function f { true; }", "select a", ": x"),
                    *("hash jq", "getopts a b", "[ -f x ]", "[[ x ]]", "! true", "{ true; }"),
                ),
            },
        ],
    },
}


@pytest.mark.slow
def test_a_usual_setup_has_no_warning(tmp_path: Path) -> None:
    assert make_desk(tmp_path, USUAL).run("debug", "config").stderr == ""


@pytest.mark.slow
def test_a_matcher_is_named_once_for_all_hooks_of_its_group(tmp_path: Path) -> None:
    hooks = make_hooks("true", "true", "no-such-program")
    groups = {
        "Stop": [{"matcher": "Bash", "hooks": hooks}],
        "PreToolUse": [{"matcher": "Bahs", "hooks": hooks}],
    }
    shown = make_desk(tmp_path, {"hooks": groups}).run("debug", "config").stderr
    assert shown.count("takes no matcher") == 1
    assert shown.count("matches no tool") == 1
    assert shown.count("is not on the PATH") == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("Be long. @AGENTS.md", False),
        ("# Ours\n\nSee @./AGENTS.md.\nBe long.", False),
        ("Be long.\n@docs/more.md", False),
        ("Be long.\n@docs/gone.md", True),
        ("Be long.\n@CLAUDE.md", True),
    ],
)
def test_what_imports_the_other_file_is_not_to_be_imported_by_it(
    text: str, is_named: bool, tmp_path: Path
) -> None:
    desk = make_desk(tmp_path, {})
    (desk.work / "docs").mkdir()
    (desk.work / "docs/more.md").write_text("@../CLAUDE.md @../AGENTS.md")
    (desk.work / "AGENTS.md").write_text("Be brief.")
    (desk.work / "CLAUDE.md").write_text(text)
    shown = " ".join(desk.run("debug", "config").stderr.split())
    assert ("CLAUDE.md is not read, since" in shown) is is_named


@pytest.mark.slow
def test_a_path_that_is_not_there_is_named_where_the_project_itself_has_the_rule(
    tmp_path: Path,
) -> None:
    settings = {"permission": {"read": {"nothing/**": "deny"}}}
    desk = make_desk(tmp_path, settings)
    assert "nothing/**" not in desk.run("debug", "config").stderr
    desk.configure()
    (desk.work / "codeloop.json").write_text(json.dumps(settings))
    assert "matches no file that is there" in desk.run("debug", "config").stderr


@pytest.mark.slow
def test_what_can_act_is_one_line_each(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, ACTIVE)
    effects = desk.run("doctor").stdout.partition("\neffect\n")[2].partition("\n\n")[0]
    assert [line.split(maxsplit=2)[:2] for line in effects.splitlines()] == [
        ["ok", name] for name in ("rules", "hooks", "skills", "instructions")
    ]
    assert desk.run("debug", "config").stderr == ""
