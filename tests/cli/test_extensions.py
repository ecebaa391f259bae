"""`codeloop command list` and `codeloop skill list`, as the real program."""

import json
from pathlib import Path

from tests.cli.program import Desk


def test_commands_are_listed_with_where_they_come_from(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / ".codeloop" / "command").mkdir(parents=True)
    (desk.work / ".codeloop" / "command" / "greet.md").write_text(
        "---\ndescription: Say hello\n---\nGreet $1\n"
    )
    assert "codeloop trust" in desk.run("command", "list").stderr
    assert desk.run("trust").returncode == 0
    done = desk.run("command", "list")
    assert (done.returncode, done.stderr) == (0, "")
    rows = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert "Say hello" in rows["/greet"]
    assert ".codeloop/command/greet.md" in rows["/greet"]
    assert rows["/init"].endswith("built-in")
    found = {
        each["name"]: each for each in json.loads(desk.run("command", "list", "--json").stdout)
    }
    assert found["greet"]["template"] == "Greet $1"


def test_skills_are_listed_with_where_they_are(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert "No skills" in desk.run("skill", "list").stderr
    file = desk.work / ".codeloop" / "skill" / "postage" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nname: postage\ndescription: Prices of \u202eletters\n---\nText\n")
    done = desk.run("skill", "list")
    assert (done.returncode, done.stderr) == (0, "")
    assert ".codeloop/skill/postage/SKILL.md" in done.stdout
    assert "\u202e" not in done.stdout
    (found,) = json.loads(desk.run("skill", "list", "--json").stdout)
    assert (found["name"], found["location"]) == ("postage", str(file))
