"""What a model's service does wrong: one clear message, bounded retries in sight, the exit code,
a way to go on.
"""

import json
import socket
from pathlib import Path

import pytest

from tests.cli.program import (
    HANGING,
    KEY,
    Desk,
    Protocol,
    bash,
    call,
    events,
    result,
    serving,
    steps,
)
from tests.support.answers import Answer, Call

SOON = {"retry-after": "0"}
HELLO = Answer(text="Hello.")
PROTOCOLS = ["openai", "anthropic"]


def test_without_any_model_the_message_says_how_to_go_on(tmp_path: Path) -> None:
    done = Desk(tmp_path).run("run", "--format", "json", "hello")
    ended = result(done)
    assert (ended["exitCode"], "sessionID" in ended) == (3, False)
    assert "codeloop auth login" in ended["message"]
    text = Desk(tmp_path).run("run", "hello")
    assert (text.returncode, text.stdout) == (3, "")
    assert 1 <= len(text.stderr.splitlines()) <= 4


def test_a_missing_key_names_the_provider_and_the_command(tmp_path: Path) -> None:
    done = Desk(tmp_path).run(
        "run", "--format", "json", "--model", "anthropic/claude-sonnet-4-5", "hello"
    )
    assert done.returncode == 3
    assert "ANTHROPIC_API_KEY" in result(done)["message"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_refused_key_is_3_and_the_key_is_not_shown(tmp_path: Path, protocol: Protocol) -> None:
    desk = Desk(tmp_path)
    with serving([HELLO], key="another-key-0123456789") as server:
        desk.use(server, protocol)
        done = desk.run("run", "--format", "json", "hello")
        assert len(server.requests) == 1, "a refused key is not tried again"
    assert result(done)["exitCode"] == 3
    assert "key" in result(done)["message"].lower()
    assert KEY not in done.stdout + done.stderr
    assert KEY not in desk.run("export").stdout


def test_an_unreachable_service_is_tried_again_and_then_3(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        desk = Desk(tmp_path)
        with serving([HELLO]) as server:
            address, server.port = server.port, port
            desk.use(server)
            server.port = address
            child = desk.start("run", "--format", "json", "hello")
            out, err = child.communicate(timeout=HANGING)
            lines = events(out)
            assert any(line["type"] == "retry" for line in lines), err
            assert lines[-1]["exitCode"] == child.returncode == 3
            desk.use(server)
            assert desk.run("run", "--continue", "hello again").returncode == 0


@pytest.mark.parametrize(
    ("protocol", "status"), [("openai", 429), ("openai", 500), ("anthropic", 529)]
)
def test_a_passing_fault_is_retried_in_sight(
    tmp_path: Path, protocol: Protocol, status: int
) -> None:
    desk = Desk(tmp_path)
    fault = Answer(status=status, body='{"error": {"message": "busy"}}', headers=SOON)
    with serving([fault, fault, HELLO]) as server:
        desk.use(server, protocol)
        done = desk.run("run", "--format", "json", "--title", "T", "hello")
    ended = result(done)
    assert (ended["exitCode"], ended["text"]) == (0, "Hello."), ended
    assert [
        line["status"]["attempt"] for line in events(done.stdout) if line["type"] == "retry"
    ] == [1, 2]


def test_a_fault_that_stays_is_given_up_with_3_and_one_line(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    page = Answer(
        status=502,
        body="<html><body><h1>Bad gateway</h1>\x1b]52;c;aGk=\x07</body></html>",
        headers=SOON,
    )
    with serving([page]) as server:
        desk.use(server)
        done = desk.run("run", "--title", "T", "hello")
        assert len(server.requests) == 5
        assert done.returncode == 3
        assert done.stderr.count("Retrying") == 4
        assert "Gave up after 5 tries" in done.stderr
        assert "<h1>" not in done.stderr
        assert "\x1b" not in done.stderr
        server.answers = [HELLO]
        assert desk.run("run", "-c", "hello").returncode == 0


def test_a_wait_of_days_is_told_and_not_slept(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([Answer(status=429, body="{}", headers={"retry-after": "1382400"})]) as server:
        desk.use(server)
        ended = result(desk.run("run", "--format", "json", "hello"))
        assert len(server.requests) == 1
    assert ended["exitCode"] == 3
    assert "16 d" in ended["message"]


def test_a_hang_before_the_first_byte_ends_at_the_configured_deadline(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([Answer(hang=30), HELLO]) as server:
        desk.use(server, options={"timeout": 150})
        done = desk.run("run", "--format", "json", "--timeout", "60", "--title", "T", "hello")
    assert any(line["type"] == "retry" for line in events(done.stdout))
    assert result(done)["exitCode"] in {0, 124}


def test_a_stall_in_the_middle_keeps_what_had_come(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([Answer(text="one two three four", deltas=0, stall_after=4)]) as server:
        desk.use(server, options={"chunkTimeout": 150})
        shown = ""
        for seconds in ("0.8", "5", "20"):  # on a busy machine the first words may take longer
            ended = result(
                desk.run("run", "--format", "json", "--timeout", seconds, "--title", "T", "hello")
            )
            assert ended["exitCode"] == 124
            if "one two" in (shown := desk.run("session", "show").stdout):
                break
        assert "one two" in shown
        server.answers = [HELLO]
        assert desk.run("run", "-c", "again").returncode == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_call_that_is_cut_is_never_run(tmp_path: Path, protocol: Protocol) -> None:
    desk = Desk(tmp_path)
    cut = Answer(
        calls=(Call("bash", json.dumps({"command": "echo ran > ran.txt", "timeout": 1000}), "c1"),),
        cut_after=3,
    )
    with serving([cut, HELLO]) as server:
        desk.use(server, protocol)
        child = desk.start("run", "--format", "json", "--timeout", "60", "--title", "T", "hello")
        out, _ = child.communicate(timeout=HANGING)
        assert events(out)[-1]["exitCode"] == child.returncode == 0
        assert len(server.requests) == 2
    assert not (desk.work / "ran.txt").exists()


@pytest.mark.parametrize(
    ("protocol", "arguments"),
    [
        ("openai", '{"command": "echo ran > ran.txt"'),
        ("openai", "[]"),
        ("anthropic", '{"command": "echo ran > ran.txt"'),
        ("anthropic", '{"command": 7}'),
    ],
)
def test_broken_arguments_come_back_as_a_result(
    tmp_path: Path, protocol: Protocol, arguments: str
) -> None:
    desk = Desk(tmp_path)
    with serving(
        steps(Answer(calls=(Call("bash", arguments, "c1"),)), Answer(text="I see."))
    ) as server:
        desk.use(server, protocol)
        done = desk.run("run", "--format", "json", "hello")
        assert len(server.requests) >= 2
    assert result(done)["exitCode"] == 0, result(done)
    assert not (desk.work / "ran.txt").exists()
    (tool,) = [line["part"] for line in events(done.stdout) if line["type"] == "tool_use"]
    assert "command" in json.dumps(tool["state"])


def test_an_unknown_tool_and_a_wrong_case_are_told_or_mended(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    answers = (
        call("teleport", where="mars"),
        call("Bash", command="echo 41", call_id="c2"),
        Answer(text="I see."),
    )
    with serving(steps(*answers)) as server:
        desk.use(server)
        done = desk.run("run", "--format", "json", "hello")
        sent = server.requests[-1].body.decode()
    assert result(done)["exitCode"] == 0
    assert "teleport" in sent
    tools = [line["part"] for line in events(done.stdout) if line["type"] == "tool_use"]
    assert [tool["tool"] for tool in tools] == ["invalid", "bash"]
    assert tools[1]["state"]["output"] == "41\n"


def test_an_empty_answer_ends_the_turn_and_the_session_goes_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([Answer()]) as server:
        desk.use(server, "anthropic")
        assert result(desk.run("run", "--format", "json", "hello"))["exitCode"] == 3
        server.answers = steps(bash("echo on"), HELLO)
        assert result(desk.run("run", "--format", "json", "-c", "again"))["exitCode"] == 0
