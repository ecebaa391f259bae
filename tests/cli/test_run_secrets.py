"""No key leaves by a child's environment, arguments, output, exports or the database;
nothing steers a terminal.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import (
    COMMAND,
    HANGING,
    KEY,
    UNCONFINED,
    Desk,
    bash,
    call,
    events,
    lives,
    result,
    serving,
    steps,
)
from tests.support.answers import Answer, Call

STORED = "sk-ant-stored-0123456789abcdef"
NAMED = "sk-named-0123456789abcdefg"
EXPORTED = "sk-proj-env-0123456789abcdef"
EVIL = "a\x1b]52;c;aGk=\x07b\x1b[2Jc\u202ed\u200be\x9bf\rg\x08h"
FORBIDDEN = [char.encode() for char in "\x1b\x07\u202e\u200b\x9b\r\x08"]


@pytest.mark.slow
def test_no_key_is_in_anything_but_its_own_request(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    look = "env; tr '\\0' ' ' < /proc/$PPID/cmdline"
    answers = (
        bash(look, "c1"),
        call("bash", call_id="c2", command="env", run_in_background=True),
        Answer(text="Done."),
    )
    keys = (KEY, STORED, EXPORTED, NAMED)
    with serving(steps(*answers), key=EXPORTED) as server:
        (desk.work / "key").write_text(NAMED)
        (desk.work / "codeloop.json").write_text(
            '{"provider": {"other": {"options": {"apiKey": "{file:key}"}}}}'
        )
        desk.use(server, options={"apiKey": "{env:MY_KEY}", "headers": {"x-extra": KEY}})
        assert desk.run("auth", "login", "anthropic", "--key-stdin", stdin=STORED).returncode == 0
        environment = {
            "MY_KEY": EXPORTED,
            "COPY_OF_IT": f"token={EXPORTED}",
            "OPENAI_API_KEY": KEY,
            "EXA_API_KEY": "exa-0123456789",
        }
        tape = tmp_path / "tape.jsonl"
        done = desk.run(
            "run", "--format", "json", "--auto", "--record", str(tape), "work", **environment
        )
        assert events(done.stdout)[-1]["exitCode"] == 0, done.stdout
        assert server.requests[0].headers["authorization"] == f"Bearer {EXPORTED}"
        assert not any(
            key.encode() in received.body for received in server.requests for key in keys
        )
        exported = desk.run("export", **environment).stdout
        shown = desk.run("session", "show", **environment).stdout
        others = (["debug", "config"], ["debug", "paths"], ["session", "list", "--json"], ["trust"])
        printed = [desk.run(*words, **environment) for words in others]
        debug = "".join(each.stdout + each.stderr for each in printed)
    output = next(
        line["part"]["state"]["output"]
        for line in events(done.stdout)
        if line["type"] == "tool_use"
    )
    assert "HOME=" in output, "the child does have an environment"
    assert "COPY_OF_IT" not in output
    assert "exa-0123456789" not in output
    text = done.stdout + done.stderr + exported + shown + debug + tape.read_text()
    files = [path for path in desk.home.rglob("*") if path.is_file()]
    assert any(path.name == "codeloop.db" for path in files)
    for key in keys:
        assert key not in text
        holding = [path.name for path in files if key.encode() in path.read_bytes()]
        assert holding == {STORED: ["auth.json"], KEY: ["codeloop.json"]}.get(key, [])


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "json"])
def test_control_characters_are_inert_everywhere(tmp_path: Path, form: str) -> None:
    desk = Desk(tmp_path)
    name = EVIL.replace("/", "")
    (desk.work / name).write_text("old\n")
    calls = (
        Call(
            "bash", json.dumps({"command": f"printf '%s' '{EVIL}'; ls", "description": EVIL}), "c1"
        ),
        Call("edit", json.dumps({"filePath": name, "oldString": "old", "newString": EVIL}), "c2"),
        Call("write", json.dumps({"filePath": ".env", "content": EVIL}), "c3"),
        Call(f"to{EVIL}ol", json.dumps({EVIL: EVIL}), "c4"),
        Call("read", json.dumps({"filePath": f"/nowhere/{EVIL}"}), "c5"),
    )
    said = Answer(text=f"Said: {EVIL}", reasoning=EVIL, calls=calls)
    with serving(steps(said, Answer(text=EVIL), title=EVIL)) as server:
        desk.use(server)
        run = ["run", "--thinking", "--format", form, "--title", EVIL, f"please {EVIL}"]
        commands = {
            "json": [run, ["export"], ["session", "list", "--json"]],
            "text": [run, ["session", "show", "--thinking"], ["session", "list"]],
        }[form]
        for command in commands:
            done = subprocess.run(
                [*COMMAND, *command],
                **desk.options(),
                capture_output=True,
                check=False,
                timeout=HANGING,
            )
            assert done.returncode in {0, 5}, done
            shown = done.stdout + done.stderr
            assert [char for char in FORBIDDEN if char in shown] == [], shown
    if form == "text":
        assert (desk.work / name).read_bytes().decode().startswith("a\x1b]52")


@pytest.mark.slow
def test_what_a_wrong_call_echoes_is_inert(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for arguments in (
        ["--model", f"{EVIL}/x"],
        ["--session", EVIL],
        [f"--{EVIL}"],
    ):
        done = subprocess.run(
            [*COMMAND, "run", *arguments, "hi"],
            **desk.options(),
            capture_output=True,
            check=False,
            timeout=HANGING,
        )
        assert done.returncode in {1, 2, 3}
        assert [char for char in FORBIDDEN if char in done.stdout + done.stderr] == [], done.stderr


@pytest.mark.slow
def test_a_command_can_not_read_the_environment_of_the_program_itself(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}, without_ptrace())
    above = "p=$PPID; while [ $p -gt 1 ]; do echo $p >> above; cat /proc/$p/environ >> seen; "
    above += "p=$(sed -n 's/^PPid:.//p' /proc/$p/status); done 2>/dev/null"
    command = f"{above}; sleep 60 & echo $! > pid; exit 3"
    with serving(steps(bash(command), Answer(text="Done."))) as server:
        desk.use(server, **UNCONFINED)
        done = desk.run("run", "--format", "json", "--auto", "--title", "T", "look")
    assert result(done)["exitCode"] == 0
    assert len((desk.work / "above").read_text().split()) > 1, "the program is among those above"
    assert KEY not in (desk.work / "seen").read_text()
    assert not lives(int((desk.work / "pid").read_text())), (
        "what it left running is still found by its mark"
    )


def without_ptrace() -> tuple[str, ...]:
    """Return what starts a program that may not look into others,
    as that of a user who is not root.
    """
    lost = "-sys_ptrace,-perfmon,-sys_admin"
    return ("setpriv", f"--bounding-set={lost}", f"--inh-caps={lost}") if os.geteuid() == 0 else ()
