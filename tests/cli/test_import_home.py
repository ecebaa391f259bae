"""`codeloop import --from`: the homes are those that the programs themselves have made, shortened,
in which a model has run one command.
"""

import json
import shutil
import sqlite3
import tracemalloc
from pathlib import Path

import pytest

from codeloop.app.switch.stored_sessions import find_sessions
from codeloop.schema.wire import JSON
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
    assert "Taken: 1 MCP server, 1 command, 1 skill, instructions, 1 key." in outputs["codex"]
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
    assert "Not taken: 1 session of /nowhere/at/all: the folder is gone" in shown
    missing = desk.run("import", "--from", "codex")
    assert missing.returncode == 2
    assert "There is no home of Codex at" in missing.stderr


@pytest.mark.slow
def test_what_the_user_has_set_is_not_overruled(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    settings = {"permissions": {"allow": ["Bash"]}, "hooks": {"Stop": []}}
    home = desk.folder / ".claude"
    write(home / "settings.json", json.dumps(settings))
    where = ("import", "--from", "claude", "--home", str(home), "--yes")
    file = desk.home / "config" / "codeloop.json"
    for text in (
        '{"permission": {"bash": {"rm *": "deny"}}}',
        '{"tools": {"bash": false}}',
        '{"permissions": {"edit": "deny"}, "hooks": {"Stop": []}}',
        '{\n  // Mine.\n  "permissions": {},\n  "hooks": {"Stop": [],}\n}',
    ):
        write(file, text)
        shown = desk.run(*where)
        assert "permissions  permissions  not taken: you have" in shown.stdout, shown.stderr
        (kept,) = (line for line in text.splitlines() if "permission" in line or "tools" in line)
        assert kept.removesuffix("}") in file.read_text()
        if "hooks" in text:
            assert file.read_text() == text
    file.unlink()
    opencode = desk.home / "opencode" / "opencode.json"
    write(opencode, '{"permission": {"bash": {"rm *": "deny"}}}')
    shown = desk.run(*where).stdout
    assert "permissions  permissions  not taken: you have" in shown
    assert "Taken: hooks." in shown


@pytest.mark.slow
def test_a_configuration_that_would_not_load_is_not_written(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    home = desk.folder / "backup" / ".claude"
    lists = {"allow": ["Bash(ls:*)"], "ask": [], "deny": ["Read(x)"]}
    broken_hook = {"hooks": [{"type": "command", "command": 5}]}
    settings = {
        "permissions": {**lists, "disableAutoMode": "disable", "defaultMode": "plan"},
        "hooks": {"Stop": [broken_hook]},
    }
    write(home / "settings.json", json.dumps(settings))
    servers: JSON = {"good": {"command": "docs"}, "odd": {"command": "docs", "type": [1]}}
    write(home.parent / ".claude.json", json.dumps({"mcpServers": servers}))
    file = desk.home / "config" / "codeloop.json"
    mine = {"type": "stdio", "command": "mine", "args": ["--x"]}
    write(file, json.dumps({"mcp": {"mine": mine}}))
    where = ("import", "--from", "claude", "--home", "../backup/.claude", "--yes")
    shown = desk.run(*where).stdout
    assert "permissions  disableAutoMode  not taken: " in shown
    assert "MCP server  odd  not taken: " in shown
    assert "permissions  defaultMode  not taken: " in shown
    assert "Not taken: hooks hooks: " in shown
    assert "expected a command" in shown
    written = json.loads(file.read_text())
    assert written["permissions"] == {"allow": ["Bash(ls:*)"], "deny": ["Read(x)"]}
    assert written["mcp"]["mine"] == mine
    assert written["mcp"].keys() == {"mine", "good"}
    assert "hooks" not in written
    assert desk.run("debug", "config").returncode == 0
    write(home / "settings.json", json.dumps({"hooks": {"Stop": []}}))
    assert "Taken: hooks." in desk.run(*where).stdout
    assert json.loads(file.read_text())["hooks"] == str(home / "settings.json")
    assert desk.run("debug", "config").returncode == 0


@pytest.mark.slow
def test_a_home_may_be_named_from_here(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    home = put_home(desk, "opencode")
    home.rename(desk.work / "backup")
    shown = desk.run("import", "--from", "opencode", "--home", "backup", "--dry-run")
    assert f"1 session  {desk.work}  is taken" in shown.stdout, shown.stderr
    write(desk.work / "AGENTS.md", "Be brief.")
    for program in ("claude", "codex", "pi"):
        taken = desk.run("import", "--from", program, "--home", ".", "--yes")
        assert taken.returncode == 0, taken.stderr
    config = json.loads((desk.home / "config" / "codeloop.json").read_text())
    assert config["instructions"] == [str(desk.work / "AGENTS.md")]


@pytest.mark.slow
def test_keys_that_are_empty_are_no_keys(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    auth = {"OPENAI_API_KEY": "", "tokens": {"access_token": "x"}}
    home = desk.folder / ".codex"
    write(home / "auth.json", json.dumps(auth))
    shown = desk.run("import", "--from", "codex", "--home", str(home), "--yes").stdout
    assert "sign-in  ChatGPT  not taken: " in shown
    assert "Taken: nothing." in shown


ODD_LINES = {
    "claude": (
        {"type": ["user"], "message": {"role": "user", "content": "x"}},
        {"type": "user", "message": {"role": "user", "content": "x"}, "timestamp": float("inf")},
        {"type": "user", "message": {"role": "user", "content": "x"}, "timestamp": float("nan")},
        {"type": "user", "message": {"role": "user", "content": "x"}, "timestamp": 1e300},
        {"type": "user", "message": {"role": "user", "content": "\ud800"}},
    ),
    "codex": (
        {"type": "response_item", "payload": {"type": ["x"]}},
        {"type": "response_item", "payload": {"type": {}, "role": ["x"]}},
        {"type": "response_item", "payload": {"type": "message", "role": ["x"]}},
    ),
    "pi": (
        {"type": "message", "message": {"role": ["user"], "content": "x"}},
        {"type": "message", "message": {"role": "user", "content": {"a": 1}}},
    ),
    "gemini": ({"type": ["user"], "id": "9", "content": "x"},),
}


@pytest.mark.slow
@pytest.mark.parametrize("program", ODD_LINES)
def test_odd_lines_do_not_end_the_import(program: str, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    home = put_home(desk, program)
    (file,) = (each for each in home.rglob("*.jsonl") if each.is_file())
    odd = ODD_LINES[program]
    if program == "gemini":
        (home / "projects.json").write_text('{"projects": {"/\\ud800": "x"}}')
        (file.parents[1] / ".project_root").write_text(str(desk.work))
    lines = file.read_text().splitlines()
    lines[-1:-1] = [json.dumps(each) for each in odd]
    file.write_text("\n".join(lines))
    shown = desk.run("import", "--from", program, "--home", str(home), "--yes")
    assert "Taken: 1 session." in shown.stdout, shown.stdout + shown.stderr


@pytest.mark.slow
def test_a_session_that_cannot_be_read_does_not_keep_the_others_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    home = put_home(desk, "opencode")
    with sqlite3.connect(home / "opencode.db") as database:
        columns = [row[1] for row in database.execute("pragma table_info(session)")]
        values = ", ".join("'odd'" if each == "id" else each for each in columns)
        database.execute(f"insert into session select {values} from session")
        # Bytes that are no UTF-8 in a text make SQLite refuse the row.
        database.execute("update session set title = cast(x'ff' as text) where id = 'odd'")
    database.close()
    shown = desk.run("import", "--from", "opencode", "--home", str(home), "--yes")
    assert "The session odd is left out" in shown.stdout, shown.stderr
    assert "Taken: 1 session." in shown.stdout, shown.stderr


def test_the_plan_holds_no_contents_of_sessions(tmp_path: Path) -> None:
    text, count = "x" * 1_000_000, 20
    for number in range(count):
        message = {"role": "user", "content": text}
        line = {"type": "user", "cwd": "/a", "message": message}
        write(tmp_path / "projects" / "a" / f"{number}.jsonl", json.dumps(line))
    problems: list[str] = []
    tracemalloc.start()
    try:
        found = find_sessions("claude", tmp_path, tmp_path, problems)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < count / 2 * len(text)
    assert problems == []
    assert [len(reads) for reads in found.values()] == [count]
    assert found["/a"][0]()["messages"][0]["parts"][0]["text"] == text
