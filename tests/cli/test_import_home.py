"""`codeloop import --from`: the homes are those that the programs themselves have made, shortened,
in which a model has run one command.
"""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.cli.program import Desk, serving
from tests.support.answers import Answer

HOMES = Path(__file__).with_name("foreign_homes")
PLACES = {
    "opencode": ".local/share/opencode",
    "claude": ".claude",
    "codex": ".codex",
    "pi": ".pi/agent",
    "gemini": ".gemini",
}


def put_home(desk: Desk, program: str) -> Path:
    """Copy the home of a program to its place; its session worked in this project."""
    home = desk.folder / PLACES[program]
    shutil.copytree(HOMES / program, home)
    for file in home.rglob("*"):
        if file.is_file():
            file.write_text(file.read_text().replace("PROJECT", str(desk.work)))
    script = home / "opencode.sql"
    if script.exists():
        with sqlite3.connect(home / "opencode.db") as database:
            database.executescript(script.read_text())
        database.close()
    return home


@pytest.mark.slow
@pytest.mark.parametrize("program", PLACES)
def test_the_next_prompt_of_a_session_of_another_agent_goes_on(
    program: str, tmp_path: Path
) -> None:
    desk = Desk(tmp_path)
    home = put_home(desk, program)
    with serving([Answer(text="Once more.")]) as model:
        desk.use(model)
        where = ("import", "--from", program, "--home", str(home))
        dry = desk.run(*where, "--dry-run")
        assert f"1 session  {desk.work}  is taken" in dry.stdout, dry.stderr
        assert desk.run("session", "list", "--json").stdout.strip() == "[]"
        taken = desk.run(*where, "--yes")
        assert "Taken: 1 session." in taken.stdout, taken.stdout + taken.stderr
        again = desk.run(*where, "--yes")
        assert "Taken: nothing." in again.stdout
        assert "it is here already" in again.stdout
        (row,) = json.loads(desk.run("session", "list", "--json").stdout)
        done = desk.run("run", "--session", row["id"], "and now?")
        assert done.stdout.strip() == "Once more.", done.stderr
        messages = model.requests[-1].json["messages"]
    texts = [message.get("content") or "" for message in messages if message["role"] != "system"]
    (call,) = [call["function"] for message in messages for call in message.get("tool_calls", ())]
    assert call["name"] == ("read" if program == "gemini" else "bash")
    assert "a.txt" in call["arguments"]
    assert "what is in a.txt?" in texts[0]
    assert "hi" in texts[2]
    assert texts[3] == "It says hi."
    assert "and now?" in texts[4]


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.slow
def test_settings_pages_and_keys_are_taken_and_the_rest_is_named(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    codex, gemini, claude = (desk.folder / PLACES[each] for each in ("codex", "gemini", "claude"))
    write(
        codex / "config.toml",
        'approval_policy = "never"\n[mcp_servers.docs]\ncommand = "docs"\nargs = ["--x"]\n',
    )
    write(codex / "prompts" / "doit.md", "Do $ARGUMENTS.\n")
    write(codex / "skills" / "knead" / "SKILL.md", "---\nname: knead\ndescription: D.\n---\nFold.")
    write(codex / "AGENTS.md", "Be brief.\n")
    write(codex / "auth.json", '{"OPENAI_API_KEY": "sk-1234567890abcdefgh", "tokens": null}')
    write(gemini / "settings.json", '{"mcpServers": {"docs": {"command": "other"}}}')
    write(
        gemini / "commands" / "git" / "commit.toml",
        'description = "Commits"\nprompt = "Commit {{args}}, see !{git status}"\n',
    )
    write(gemini / "oauth_creds.json", "{}")
    rules = {"permissions": {"deny": ["Bash(rm:*)"]}, "hooks": {"Stop": []}, "statusLine": {}}
    write(claude / "settings.json", json.dumps(rules))
    project_rules = {"permissions": {"allow": ["Bash(ls:*)"]}, "hooks": {"Stop": [{}]}}
    write(desk.work / ".claude" / "settings.json", json.dumps(project_rules))
    write(desk.work / "GEMINI.md", "Be kind.")
    outputs = {
        program: desk.run("import", "--from", program, "--home", str(home), "--yes").stdout
        for program, home in (("codex", codex), ("gemini", gemini), ("claude", claude))
    }
    assert "approval_policy  not taken: " in outputs["codex"]
    assert "Taken: 1 MCP server, 1 command, 1 skill, 1 instructions, 1 key." in outputs["codex"]
    assert "docs  not taken: there is one of that name already" in outputs["gemini"]
    assert "google  not taken: such a sign-in is for that program alone" in outputs["gemini"]
    assert "statusLine  not taken: " in outputs["claude"]
    assert 'write "hooks": ".claude/settings.json" to its codeloop.json' in outputs["claude"]
    assert "permissions of .claude/settings.json  not taken" in outputs["claude"]
    assert "GEMINI.md  not taken: it is this project's" in outputs["gemini"]
    config = json.loads((desk.home / "config" / "codeloop.json").read_text())
    assert config == {
        "instructions": [str(codex / "AGENTS.md")],
        "hooks": str(claude / "settings.json"),
        "permissions": {"deny": ["Bash(rm:*)"]},
        "mcp": {"docs": {"type": "local", "command": ["docs", "--x"]}},
    }
    page = (desk.home / "config" / "command" / "git" / "commit.md").read_text()
    assert page == '---\ndescription: "Commits"\n---\nCommit $ARGUMENTS, see !`git status`\n'
    commands = desk.run("command", "list").stdout
    assert "/doit" in commands
    assert "/knead" in commands
    assert "openai" in desk.run("auth", "list").stdout
    asked = desk.run("import", "--from", "codex", "--home", str(codex))
    assert "Nothing was taken. --yes takes it without asking." in asked.stdout


@pytest.mark.slow
def test_sessions_of_folders_that_are_gone_are_named(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    home = put_home(desk, "pi")
    for file in home.rglob("*.jsonl"):
        file.write_text(file.read_text().replace(str(desk.work), "/nowhere/at/all"))
    shown = desk.run("import", "--from", "pi", "--home", str(home), "--yes").stdout
    assert "Not taken: 1 sessions of /nowhere/at/all: the folder is gone" in shown
    missing = desk.run("import", "--from", "codex")
    assert missing.returncode == 2
    assert "There is no home of Codex at" in missing.stderr
