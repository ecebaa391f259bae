"""What docs/cli.md shows runs, and its JSON has the fields of the real one."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

from bench.answers import Answer
from bench.wire import Received
from tests.cli.program import COMMAND, KEY, Desk, bash, events, serving

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_commands_run(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for name in ("error.log", "task.md"):
        (desk.work / name).write_text("Something to do.\n")
    (desk.work / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (desk.work / "key.txt").write_text("sk-ant-0123456789abcdef\n")
    program = tmp_path / "bin" / "codeloop"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    program.chmod(0o755)
    blocks = [text for language, text in BLOCK.findall(PAGE) if language == "sh"]
    assert len(blocks) == 4
    options = desk.options()
    options["env"]["PATH"] = f"{program.parent}:{options['env']['PATH']}"
    with serving([Answer(text="Done.")]) as server:
        desk.use(server)
        script = "\n".join(blocks)
        done = subprocess.run(
            ["sh", "-e", "-c", script], **options, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        prompts = [str(received.json["messages"][1]["content"]) for received in server.requests]
    assert "explain this error\\n\\nSomething to do." in prompts[2]
    assert json.loads((desk.work / "run.jsonl").read_text().splitlines()[-1])["exitCode"] == 0
    assert json.loads((desk.work / "session.json").read_text())["messages"]
    assert KEY not in done.stdout


def shape(line: dict[str, Any]) -> dict[str, Any]:
    """The fields of a line, and those of what it is about; `data` and `metadata` vary."""
    inner = line.get("part") or line.get("status") or {}
    return {"line": set(line), "inner": set(inner), "state": set(inner.get("state", {}))}


def test_the_lines_shown_have_the_fields_of_the_real_ones(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    turn = iter(
        [
            Answer(status=429, body="{}", headers={"retry-after": "0"}),
            Answer(text="I look.", reasoning="Let me see.", calls=bash("ls").calls),
            Answer(status=400, body="{}"),
        ]
    )

    def choose(received: Received) -> Answer:
        return next(turn)

    with serving(choose) as server:
        desk.use(server)
        done = desk.run("run", "--format", "json", "--title", "T", "hello")
    real = {line["type"]: line for line in events(done.stdout)}
    (text,) = [text for language, text in BLOCK.findall(PAGE) if language == "json"]
    shown = {line["type"]: line for line in events(text)}
    assert list(shown)[-1] == "result"
    assert {kind: shape(line) for kind, line in shown.items()} == {kind: shape(line) for kind, line in real.items()}


def test_every_flag_of_run_is_explained(tmp_path: Path) -> None:
    flags = set(re.findall(r"--[a-z-]+", Desk(tmp_path).run("run", "--help").stdout)) - {"--help"}
    assert {flag for flag in flags if f"{flag}`" not in PAGE and f"{flag} " not in PAGE} == set()
