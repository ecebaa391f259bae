"""Every flag of `codeloop run`, and the ways in which a message comes."""

import base64
import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import (
    COMMAND,
    HANGING,
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
from tests.support.answers import Answer, Counts

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
HELLO = Answer(text="Hello.")


def test_model_agent_title_and_config_are_taken(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([HELLO]) as server:
        desk.use(server)
        more = {
            "provider": {"local": {"models": {"other": {"id": "the-other"}}}},
            "agent": {"poet": {"prompt": "You write verse.", "temperature": 0.25}},
        }
        (tmp_path / "more.json").write_text(json.dumps(more))
        flags = [
            "--config",
            str(tmp_path / "more.json"),
            "-m",
            "local/other",
            "--agent",
            "poet",
            "--title",
            "Verse",
        ]
        ended = result(desk.run("run", "--format", "json", *flags, "hello"))
    assert ended["exitCode"] == 0, ended
    sent = server.requests[0].json
    assert sent["model"] == "the-other"
    assert sent["temperature"] == 0.25
    assert "You write verse." in sent["messages"][0]["content"]
    (row,) = json.loads(desk.run("session", "list", "--json").stdout)
    assert (row["title"], row["agent"], row["model"]["id"]) == ("Verse", "poet", "other")


@pytest.mark.slow
def test_dir_is_where_the_tools_work(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "inner").mkdir()
    with serving(
        steps(bash("pwd"), call("write", filePath="made.txt", content="x"), HELLO)
    ) as server:
        desk.use(server)
        done = desk.run("run", "--format", "json", "--dir", "inner", "hello")
    assert result(done)["exitCode"] == 0
    outputs = [
        line["part"]["state"]["output"]
        for line in events(done.stdout)
        if line["type"] == "tool_use"
    ]
    assert outputs[0].strip() == str(desk.work / "inner")
    assert (desk.work / "inner" / "made.txt").read_text() == "x"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--max-steps", "2"], "2 steps"),
        (["--max-cost", "0.0002"], "$0.0002"),
        (["--max-tokens", "200"], "200 tokens"),
    ],
)
def test_a_limit_ends_the_turn_with_4_and_the_session_goes_on(
    tmp_path: Path, flags: list[str], word: str
) -> None:
    desk = Desk(tmp_path)
    with serving(lambda received: bash(f"echo {len(received.body)}")) as server:
        desk.use(server)
        ended = result(desk.run("run", "--format", "json", *flags, "go on and on"))
        assert (ended["exitCode"], ended["reason"], ended["steps"]) == (4, "limit", 2)
        assert word in ended["message"]
        server.answers = [HELLO]
        assert desk.run("run", "--continue", "go on").returncode == 0


@pytest.mark.slow
def test_a_timeout_ends_what_runs_with_124(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("sleep 600 & echo $! > pid; wait"), HELLO)) as server:
        desk.use(server, **UNCONFINED)
        ended = result(desk.run("run", "--format", "json", "--timeout", "3", "wait"))
        if not (desk.work / "pid").exists():  # on a busy machine, even the command begins later
            ended = result(desk.run("run", "--format", "json", "--timeout", "60", "wait"))
    assert (ended["exitCode"], ended["reason"]) == (124, "timeout")
    assert ended["sessionID"] in ended["message"]
    assert ended["durationMs"] < 300_000  # of the command's 600 s
    assert not lives(int((desk.work / "pid").read_text()))


def test_thinking_is_shown_only_when_asked_for(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([Answer(reasoning="I ponder.", text="Hello.")]) as server:
        desk.use(server)
        assert "I ponder." not in desk.run("run", "hello").stderr
        shown = desk.run("run", "--thinking", "hello")
    assert "I ponder." in shown.stderr
    assert shown.stdout == "Hello.\n"


@pytest.mark.slow
def test_files_reach_the_model_as_text_and_as_images(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "näme %20#.txt").write_text("the words\n")
    (desk.work / "dot.png").write_bytes(PIXEL)
    with serving([HELLO]) as server:
        desk.use(server, "anthropic")
        done = desk.run(
            "run", "--format", "json", "-f", "näme %20#.txt", "--file", "dot.png", "look"
        )
        assert result(done)["exitCode"] == 0, done
        again = desk.run("run", "--format", "json", "-f", "näme %20#.txt")
        assert result(again)["exitCode"] == 0, "a file alone is a prompt"
    blocks = server.requests[0].json["messages"][0]["content"]
    assert any("the words" in block.get("text", "") for block in blocks)
    (image,) = [block for block in blocks if block["type"] == "image"]
    assert base64.b64decode(image["source"]["data"]) == PIXEL


@pytest.mark.parametrize("name", ["missing.txt", "binary.dat"])
def test_a_file_that_can_not_be_sent_is_an_error_and_no_session_is_left(
    tmp_path: Path, name: str
) -> None:
    desk = Desk(tmp_path)
    (desk.work / "binary.dat").write_bytes(b"\x00\xff\xfe\x01")
    with serving([HELLO]) as server:
        desk.use(server)
        done = desk.run("run", "--format", "json", "-f", name, "look")
        assert done.returncode in {1, 2}
        assert name in result(done)["message"]
        assert server.requests == []
    assert desk.run("session", "list", "--json").stdout.strip() == "[]"


@pytest.mark.slow
def test_what_was_recorded_is_replayed_without_the_server(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "a.txt").write_text("one\n")
    edit = call("edit", filePath="a.txt", oldString="one", newString="two")
    with serving(
        steps(call("read", filePath="a.txt", call_id="c0"), edit, Answer(text="Done."))
    ) as server:
        desk.use(server)
        done = desk.run("run", "--record", str(tmp_path / "tape.jsonl"), "change it")
        assert done.returncode == 0, done.stderr
    assert (desk.work / "a.txt").read_text() == "two\n"
    (desk.work / "a.txt").write_text("one\n")
    again = desk.run("run", "--replay", str(tmp_path / "tape.jsonl"), "change it")
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout == "Done.\n"
    assert (desk.work / "a.txt").read_text() == "two\n"


def test_a_recording_that_can_not_be_written_is_said_before_the_model_is_asked(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    with serving([HELLO]) as server:
        desk.use(server)
        done = desk.run("run", "--format", "json", "--record", "nowhere/tape.jsonl", "hello")
        assert server.requests == []
    assert done.returncode == 1
    assert "nowhere/tape.jsonl" in result(done)["message"]


@pytest.mark.slow
def test_the_message_comes_from_words_stdin_or_both(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    big = "".join(f"line {number} of a long log\n" for number in range(50_000))
    assert len(big) > 1_000_000
    with serving([HELLO]) as server:
        desk.use(server)
        for arguments, stdin in (
            (["two", "words"], "not read"),
            ([], big),
            (["-", "explain"], "piped"),
            (["-"], "p2"),
        ):
            assert desk.run("run", *arguments, stdin=stdin).returncode == 0
        prompts = [received.json["messages"][1]["content"] for received in server.requests]
    texts = [each if isinstance(each, str) else each[0]["text"] for each in prompts]
    assert texts == ["two words", big.strip(), "explain\n\npiped", "p2"]


@pytest.mark.parametrize("arguments", [[], ["-"], ["--", "  "]])
def test_an_empty_message_is_a_wrong_call(tmp_path: Path, arguments: list[str]) -> None:
    desk = Desk(tmp_path)
    done = desk.run("run", "--format", "json", *arguments, stdin=" \n")
    assert done.returncode == 2
    assert "codeloop run" in result(done)["message"]


@pytest.mark.parametrize(
    "flags",
    [
        ["--max-steps", "0"],
        ["--nope"],
        ["--timeout", "soon"],
        ["--model", "plain"],
        ["--session", "ses_none"],
        ["--agent", "nobody"],
        ["--file", "missing.txt"],
        ["--dir", "missing"],
    ],
)
def test_a_wrong_call_is_2_and_still_has_a_result(tmp_path: Path, flags: list[str]) -> None:
    done = Desk(tmp_path).run("run", "--format=json", *flags, "hello")
    assert done.returncode == 2
    assert flags[-1] in result(done)["message"] or flags[0] in result(done)["message"]
    assert "sessionID" not in result(done)


def test_a_wrong_call_in_text_says_nothing_on_stdout(tmp_path: Path) -> None:
    done = Desk(tmp_path).run("run", "--model", "plain", "hello")
    assert (done.returncode, done.stdout) == (2, "")
    assert "PROVIDER/MODEL" in done.stderr


def test_continue_without_a_session_is_a_wrong_call(tmp_path: Path) -> None:
    done = Desk(tmp_path).run("run", "--format", "json", "--continue", "hello")
    assert done.returncode == 2
    assert "--continue" in result(done)["message"]


def test_both_session_and_continue_are_a_wrong_call(tmp_path: Path) -> None:
    done = Desk(tmp_path).run("run", "--format", "json", "-c", "-s", "ses_x", "hello")
    assert done.returncode == 2
    assert "--session" in result(done)["message"]


def test_an_answer_that_is_cut_by_the_output_limit_is_3(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([Answer(text="And so", finish="length", counts=Counts())]) as server:
        desk.use(server)
        ended = result(desk.run("run", "--format", "json", "hello"))
    assert (ended["exitCode"], ended["reason"], ended["text"]) == (3, "length", "And so")


def test_what_is_stored_and_recorded_is_private(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([HELLO]) as server:
        # A sandbox makes mount points for all, in a folder that only the user may enter.
        desk.use(server, sandbox="off")
        assert desk.run("run", "--record", "tape.jsonl", "hello").returncode == 0
    made = [desk.home / "data", *(desk.home / "data").rglob("*")]
    assert len(made) > 2
    assert {path.stat().st_mode & 0o077 for path in [*made, desk.work / "tape.jsonl"]} == {0}


@pytest.mark.slow
@pytest.mark.parametrize("command", [[], ["--command", "init"]])
def test_a_stdin_that_nobody_reads_is_said(tmp_path: Path, command: list[str]) -> None:
    desk = Desk(tmp_path)
    (desk.work / "change.diff").write_text("+ a line")
    with serving([HELLO]) as server:
        desk.use(server)
        line = " ".join(["run", *command, "--title T hello"])
        for source in ("printf '+ a line' |", "< change.diff"):
            assert "stdin was not read" in in_shell(desk, line, source), source
        for source in ("< /dev/null", "<&-", ": |", "sleep 1 |"):
            assert "stdin" not in in_shell(desk, line, source), source


def in_shell(desk: Desk, line: str, source: str) -> str:
    """Run the program in a shell with a source of stdin; return what it says on stderr."""
    script = f'{source} "$@" {line}' if source.endswith("|") else f'"$@" {line} {source}'
    command = ["sh", "-c", script, "sh", *COMMAND]
    done = subprocess.run(
        command, **desk.options(), capture_output=True, text=True, timeout=HANGING, check=True
    )
    return done.stderr


def test_the_name_of_a_tool_that_does_not_exist_is_shown(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(call("frobnicate", what="x"), HELLO)) as server:
        desk.use(server)
        shown = desk.run("run", "work").stderr
    assert "invalid frobnicate" in shown
