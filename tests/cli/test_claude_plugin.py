"""A plugin folder of Claude Code, added as it is: what each of its parts does reaches the model."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.program import Desk, call, serving, steps
from tests.extend.mcp.world import PLAIN
from tests.support.answers import Answer

FILES = {
    ".claude-plugin/plugin.json": '{"name": "bakery", "version": "1.0.0", "description": "Bread"}',
    "agents/baker.md": (
        "---\nname: baker\ndescription: Bakes bread\nmodel: inherit\ntools: Read, Bash\ncolor: blue\n---\nYou bake.\n"
    ),
    "commands/loaf.md": "---\ndescription: Plan a loaf\nargument-hint: [flour]\n---\nPlan a loaf of $ARGUMENTS.\n",
    "skills/kneading/SKILL.md": "---\nname: kneading\ndescription: How dough is kneaded.\n---\nFold it ten times.\n",
    "scripts/say.sh": '#!/bin/sh\ncat "$CLAUDE_PLUGIN_ROOT/notes/$1"\n',
    "notes/start": "The oven is hot.",
    "notes/prompt": "Today is a rye day.",
    "notes/call": json.dumps(
        {
            "hookSpecificOutput": {
                "hookEventName": "PostToolUse",
                "additionalContext": "Let it cool for an hour.",
            }
        }
    ),
    "hooks/hooks.json": json.dumps(
        {
            "description": "Says how the day goes",
            "hooks": {
                event: [
                    {
                        "matcher": matcher,
                        "hooks": [
                            {
                                "type": "command",
                                "command": f'sh "${{CLAUDE_PLUGIN_ROOT}}/scripts/say.sh" {note}',
                            }
                        ],
                    }
                ]
                for event, matcher, note in (
                    ("SessionStart", "startup", "start"),
                    ("UserPromptSubmit", "", "prompt"),
                    ("PostToolUse", "Read|Bash", "call"),
                )
            },
        }
    ),
    ".mcp.json": json.dumps(
        {
            "mcpServers": {
                "oven": {
                    "command": sys.executable,
                    "args": ["${CLAUDE_PLUGIN_ROOT}/servers/oven.py"],
                }
            }
        }
    ),
}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    for name, text in FILES.items():
        file = tmp_path / "bakery" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "bakery" / "servers").mkdir()
    shutil.copy(PLAIN, tmp_path / "bakery" / "servers" / "oven.py")
    (desk.work / "note.txt").write_text("flour\n")
    return desk


@pytest.mark.slow
def test_each_part_of_a_claude_code_plugin_reaches_the_model(desk: Desk) -> None:
    calls = (
        call("read", filePath="note.txt"),
        call("oven_echo", text="hot"),
        call("skill", name="kneading"),
    )
    with serving(steps(*calls, Answer(text="Done."))) as model:
        desk.use(model, permission={"*": "allow"})
        added = desk.run("plugin", "add", str(desk.folder / "bakery"))
        assert added.returncode == 0, added.stderr
        listed = desk.run("plugin", "list", "--json")
        (row,) = json.loads(listed.stdout)
        assert row["tools"] == ["agents/", "commands/", "skills/", "mcp oven"]
        assert row["hooks"] == ["SessionStart", "UserPromptSubmit", "PostToolUse"]
        done = desk.run("run", "bake")
        assert done.stdout.strip() == "Done.", done.stderr
        request = model.requests[-1].json
        named = desk.run("run", "--command", "bakery:loaf", "rye")
        planned = model.requests[-1].json
        alone = desk.run("run", "--agent", "baker", "go on")
        baked = model.requests[-1].json
    texts = json.dumps(request["messages"])
    for words in (
        "The oven is hot.",
        "Today is a rye day.",
        "Let it cool for an hour.",
        "echo: hot",
        "Fold it ten times.",
    ):
        assert words in texts, words
    assert "How dough is kneaded." in json.dumps(request)
    assert "Plan a loaf of rye." in json.dumps(planned), named.stderr
    assert "You bake." in baked["messages"][0]["content"], alone.stderr
    offered = {each["function"]["name"] for each in baked["tools"]}
    assert {"read", "bash"} <= offered
    assert "write" not in offered
    assert "Traceback" not in done.stderr + named.stderr + alone.stderr
