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
