"""`run` in the format that SDKs of other agents read: messages on stdin, lines on stdout,
requests both ways.
"""

import json
import signal
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.permission import NOBODY_MESSAGE
from tests.cli.program import UNCONFINED, Desk, bash, call, events, is_prompt, serving, steps
from tests.support.answers import Answer, Call
from tests.support.http_connection import ReceivedRequest

STREAM = ("run", "--output-format", "stream-json")
TALK = (*STREAM, "--input-format", "stream-json")
LOOK = Call("bash", json.dumps({"command": "cat a.txt", "description": "Reads it"}), "call_1")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def user(content: Any) -> str:
    return json.dumps(
        {"type": "user", "message": {"role": "user", "content": content}, "session_id": "default"}
    )


def control(number: str, **request: Any) -> str:
    return json.dumps({"type": "control_request", "request_id": number, "request": request})


def of(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["type"] == kind]


def blocks(lines: list[dict[str, Any]]) -> list[str]:
    return [
        block["type"]
        for line in lines
        if line["type"] in {"assistant", "user"}
        for block in line["message"]["content"]
    ]


def test_each_message_is_answered_by_a_result_and_a_bad_line_costs_none(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "a.txt").write_text("hello\n")
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
    }
    said = [
        control("r1", subtype="initialize"),
        user("read a.txt"),
        "nonsense",
        user([{"type": "tool_use"}]),
        user([{"type": "text", "text": "and this?"}, image]),
        user("/nothing"),
        control("r2", subtype="rewind"),
        user("once more"),
    ]
    answers = steps(
        Answer(reasoning="Let me see.", text="I look.", calls=(LOOK,)),
        Answer(text="It says hello."),
    )
    with serving(answers) as server:
        desk.use(server, **UNCONFINED)
        # None is asked for and paid.
        flags = (
            "--include-partial-messages",
            "--replay-user-messages",
            "--title",
            "T",
        )
        done = desk.run(*TALK, *flags, stdin="\n".join(said))  # the last line has no end
        pictures = [received for received in server.requests if b"image_url" in received.body]
    lines = events(done.stdout)
    first, results = lines[0], of(lines, "result")
    assert (first["type"], first["subtype"], first["cwd"]) == ("system", "init", str(desk.work))
    assert first["model"] == "local/m"
    assert "bash" in first["tools"]
    assert [each["is_error"] for each in results] == [False, True, True, False, True, False]
    assert "Message 3 of stdin was not sent: the line is not JSON" in results[1]["errors"][0]
    assert "`message.content[0]` is not a block" in results[2]["errors"][0]
    assert "/nothing" in results[4]["errors"][0]
    assert done.returncode == 2
    for good in (results[0], results[3], results[5]):
        assert (good["subtype"], good["result"], good["num_turns"]) == (
            "success",
            "It says hello.",
            2,
        )
        assert good["total_cost_usd"] == 0.00028
        assert (good["usage"]["input_tokens"], good["usage"]["output_tokens"]) == (200, 40)
        assert good["modelUsage"]["local/m"]["outputTokens"] == 40
        assert good["session_id"] == first["session_id"]
    assert pictures
    turn = lines[: lines.index(results[0])]
    assert blocks([line for line in turn if not line.get("isReplay")]) == [
        "thinking",
        "text",
        "tool_use",
        "tool_result",
        "text",
    ]
    assert len([line for line in lines if line.get("isReplay")]) == 4
    result = next(line for line in turn if line["type"] == "user" and not line.get("isReplay"))[
        "message"
    ]["content"][0]
    assert result == {
        "type": "tool_result",
        "tool_use_id": "call_1",
        "content": "hello\n",
        "is_error": False,
    }
    last = of(turn, "assistant")[-1]["message"]
    assert (last["model"], last["usage"]["input_tokens"]) == ("local/m", 100)
    assert [line["response"]["subtype"] for line in of(lines, "control_response")] == [
        "success",
        "error",
    ]
    check_deltas([line["event"] for line in of(turn, "stream_event")])


def check_deltas(stream: list[dict[str, Any]]) -> None:
    """Put the pieces of the first turn's answers together as a client does."""
    assert [each["type"] for each in stream if each["type"].startswith("message_")] == [
        *("message_start", "message_delta", "message_stop") * 2
    ]
    texts: list[str] = []
    for event in stream:
        if event["type"] == "content_block_start":
            texts.append("")
        elif event["type"] == "content_block_delta":
            texts[-1] += next(value for name, value in event["delta"].items() if name != "type")
    assert texts[:2] == ["Let me see.", "I look."]
    assert json.loads(texts[2]) == json.loads(LOOK.arguments or "")
    assert texts[3] == "It says hello."
    assert [each["delta"]["stop_reason"] for each in stream if each["type"] == "message_delta"] == [
        "tool_use",
        "end_turn",
    ]


def test_one_prompt_is_lines_or_the_last_of_them(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("true"), Answer(text="Done."))) as server:
        desk.use(server, **UNCONFINED)
        lines = events(desk.run(*STREAM, "go").stdout)
        assert [line["type"] for line in lines] == [
            "system",
            "assistant",
            "user",
            "assistant",
            "result",
        ]
        (alone,) = events(desk.run("run", "--output-format", "json", "go").stdout)
        assert (alone["subtype"], alone["result"]) == ("success", "Done.")
        cut = desk.run("run", "--output-format", "json", "--max-steps", "1", "go")
        assert json.loads(cut.stdout)["subtype"] == "error_max_turns"
        cut = desk.run("run", "--output-format", "json", "--max-cost", "0.0001", "go")
        assert json.loads(cut.stdout)["subtype"] == "error_max_budget_usd"
        denied = desk.run(
            *STREAM,
            "--profile",
            "ask",
            "go",
            CODELOOP_CONFIG_CONTENT='{"permission":{"bash":"ask"}}',
        )
        (refusal,) = events(denied.stdout)[-1]["permission_denials"]
        assert (refusal["tool_name"], refusal["tool_use_id"]) == ("bash", "call_1")
        assert denied.returncode == 5


@pytest.mark.slow
def test_a_goal_goes_on_until_its_check_passes(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(goal_answers) as server:
        desk.use(server, **UNCONFINED)
        goal = ("--goal", "there is a file", "--check", "test -f made")
        done = desk.run("run", "--output-format", "json", *goal)
    (alone,) = events(done.stdout)
    assert (alone["subtype"], (desk.work / "made").exists()) == ("success", True), alone


def goal_answers(received: ReceivedRequest) -> Answer:
    """End at first without doing anything; when told that the check fails, do it."""
    if b'"tools"' not in received.body:
        return Answer(text="T")
    prompts = [message for message in received.json["messages"] if is_prompt(message)]
    if len(prompts) < 2:
        return Answer(text="I think it is there.")
    return steps(bash("touch made"), Answer(text="Now it is."))(received)


def test_wrong_flags_are_a_result_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for flags, words in (
        ((*STREAM, "--nope", "go"), "Unknown option"),
        ((*STREAM, "--format", "json", "go"), "--format and --output-format"),
        ((*TALK, "go"), "the messages come from stdin"),
        ((*STREAM, "--replay-user-messages", "go"), "needs --input-format stream-json"),
        (
            ("run", "--output-format", "json", "--include-partial-messages", "go"),
            "needs --output-format stream-json",
        ),
    ):
        done = desk.run(*flags)
        (last,) = events(done.stdout)
        assert (last["type"], last["is_error"], done.returncode) == ("result", True, 2)
        assert words in last["errors"][0]


class Host:
    """A program that drives a run over its stdin and stdout."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []

    def write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        assert self.process.stdout is not None
        for text in self.process.stdout:
            self.lines.append(json.loads(text))
            if holds(self.lines[-1]):
                return self.lines[-1]
        raise AssertionError(f"it ended: {self.lines[-3:]}")

    def until_type(self, kind: str) -> dict[str, Any]:
        return self.until(lambda line: line["type"] == kind)

    def answer(self, asked: dict[str, Any], **response: Any) -> None:
        given = {"subtype": "success", "request_id": asked["request_id"], "response": response}
        self.write(json.dumps({"type": "control_response", "response": given}))


@contextmanager
def hosting(desk: Desk, *flags: str) -> Generator[Host, None, None]:
    pipe = subprocess.PIPE
    command = [*desk.command, *TALK, *flags]
    process = subprocess.Popen(
        command, **desk.options(), stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )
    try:
        yield Host(process)
    finally:
        process.kill()
        process.communicate()


def answer_by_words(received: ReceivedRequest) -> Answer:
    """Sleep, or call what the prompt says, and then report the result."""
    if b'"tools"' not in received.body:
        return Answer(text="T")
    messages = received.json["messages"]
    if not is_prompt(messages[-1]):
        return Answer(text=f"Result: {messages[-1]['content']}")
    words = str(messages[-1]["content"])
    if "sleep" in words:
        return Answer(text="a " * 400, delay=0.1, deltas=0)
    return call(
        "bash", command=words.partition("run: ")[2].partition("'")[0].strip(), description="Runs it"
    )


@pytest.mark.slow  # waits for answers that are interrupted
def test_the_program_is_asked_interrupts_and_ends_the_run(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(answer_by_words) as server:
        desk.use(server, sandbox="off")
        with hosting(
            desk,
            "--permission-prompt-tool",
            "stdio",
            "--profile",
            "ask",
            "--include-partial-messages",
        ) as host:
            host.write(user("run: touch made"))
            asked = host.until_type("control_request")
            assert asked["request"]["subtype"] == "can_use_tool"
            assert asked["request"]["input"]["command"] == "touch made"
            host.answer(asked, behavior="allow", updatedInput=asked["request"]["input"])
            assert host.until_type("result")["subtype"] == "success"
            assert (desk.work / "made").exists()

            host.write(user("run: touch other"))
            host.answer(
                host.until_type("control_request"),
                behavior="allow",
                updatedInput={"command": "rm made"},
            )
            refused = host.until_type("user")["message"]["content"][0]
            assert refused["is_error"]
            assert "changed the arguments" in refused["content"]
            host.until_type("result")
            assert not (desk.work / "other").exists()

            host.write(user("run: touch third"))
            host.answer(
                host.until_type("control_request"), behavior="deny", message="Not that one."
            )
            assert "Not that one." in host.until_type("user")["message"]["content"][0]["content"]
            assert host.until_type("result")["permission_denials"][0]["tool_name"] == "bash"

            host.write(user("run: touch third"))
            empty = {
                "subtype": "success",
                "request_id": host.until_type("control_request")["request_id"],
            }
            host.write(json.dumps({"type": "control_response", "response": empty}))
            assert NOBODY_MESSAGE in host.until_type("user")["message"]["content"][0]["content"]
            host.until_type("result")

            host.write(user("sleep"))
            host.write(user("run: touch fourth"))  # waits for its turn
            host.until(
                lambda line: line["type"] == "stream_event" and "text_delta" in json.dumps(line)
            )
            # Both at once: the next turn must not ask before the mode is set.
            mode = control("m", subtype="set_permission_mode", mode="bypassPermissions")
            host.write(control("i", subtype="interrupt") + "\n" + mode)
            assert host.until_type("result")["subtype"] == "error_during_execution"
            last = host.until_type("result")
            assert (last["subtype"], (desk.work / "fourth").exists()) == ("success", True)

            host.process.send_signal(signal.SIGTERM)
            assert host.process.wait(60) == 130
