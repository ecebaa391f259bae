"""What a run has used, told truly: interrupted, tried again, not counted by the service,
used by subagents.
"""

import json
import re
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import UNCONFINED, Desk, Protocol, bash, call, events, result, serving, steps
from tests.cli.terminal import Terminal
from tests.support.answers import Answer, Counts
from tests.support.http_connection import ReceivedRequest

HELLO = Answer(text="Hello.")
SUMMARY = Answer(text="We said hello.", counts=Counts(input=300, output=30))


def stored(desk: Desk) -> list[dict[str, Any]]:
    """Return the stored sessions, those of subagents last."""
    with sqlite3.connect(desk.database()) as database:
        return [
            json.loads(row[0])
            for row in database.execute("SELECT data FROM session ORDER BY parent_id IS NOT NULL")
        ]


def waiting(is_so: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, is_so
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_step_that_is_ended_while_its_command_runs_keeps_what_its_answer_used(
    tmp_path: Path, number: signal.Signals
) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("touch begun; sleep 600"), HELLO)) as server:
        desk.use(server, small_model="local/m")
        running = desk.start("run", "--auto", "--title", "T", "wait")
        waiting((desk.work / "begun").exists)
        # A command starts before the end of its answer, which has the counts.
        waiting(lambda: stored(desk)[0]["tokens"]["input"])
        running.send_signal(number)
        running.communicate(timeout=60)
        (session,) = stored(desk)
        assert (session["tokens"]["input"], session["tokens"]["output"]) == (100, 20)
        assert session["cost"] == pytest.approx(0.00014)
        server.answers = [HELLO]
        assert desk.run("run", "--continue", "go on").returncode == 0
    assert stored(desk)[0]["cost"] == pytest.approx(0.00028)
    total = json.loads(desk.run("stats", "--json").stdout)["total"]
    assert total["cost"] == pytest.approx(0.00028)


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_an_answer_that_is_interrupted_is_estimated_and_marked(
    tmp_path: Path, protocol: Protocol
) -> None:
    desk = Desk(tmp_path)
    text = "word " * 299 + "last " + "word " * 100
    with serving(
        [Answer(text=text, deltas=400, counts=Counts(input=700, cached=200), stall_after=310)]
    ) as server:
        desk.use(server, protocol)
        terminal = Terminal(desk, "run", "--title", "T", "tell me")
        terminal.wait_for("last")
        terminal.child.send_signal(signal.SIGINT)
        assert terminal.end() == 130
    (session,) = stored(desk)
    used, cached = session["tokens"], session["tokens"]["cache"]["read"]
    assert 300 < used["output"] < 500
    if protocol == "openai":  # it counts at the end
        assert used["input"] > 1_000, "the system prompt and the tools were sent"
        assert used["estimated"] == used["input"] + used["output"]
    else:  # it counts the input at the start
        assert (used["input"], cached) == (500, 200)
        assert 300 < used["estimated"] <= used["output"]
    assert session["cost"] == pytest.approx((used["input"] + cached + 2 * used["output"]) / 1e6)
    shown = (
        terminal.shown,
        *(
            desk.run(*words).stdout
            for words in (["session", "show"], ["session", "list"], ["stats"])
        ),
    )
    assert all("~$" in text for text in shown), shown


def test_a_service_that_counts_nothing_is_estimated_and_one_that_counts_is_not(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    with serving([Answer(text="word " * 400, counts=None)]) as server:
        desk.use(server)
        lines = events(desk.run("run", "--title", "T", "--format", "json", "tell me").stdout)
        finish = next(line["part"] for line in lines if line["type"] == "step_finish")
        assert (
            finish["tokens"]["estimated"] == finish["tokens"]["input"] + finish["tokens"]["output"]
        )
        assert lines[-1]["tokens"]["estimated"] == finish["tokens"]["estimated"]
        assert 400 <= lines[-1]["tokens"]["output"] <= 600
        server.answers = [HELLO]
        again = result(desk.run("run", "--continue", "--format", "json", "once more"))
    assert "estimated" not in again["tokens"]
    assert (again["tokens"]["input"], again["tokens"]["output"]) == (100, 20)


def test_a_title_counts_in_the_run_the_session_and_the_sums(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    titled = desk.work / "titled"
    # No turn waits for its title.
    answer = steps(bash("until [ -e titled ]; do sleep 0.02; done"), HELLO)

    def choose(received: ReceivedRequest) -> Answer:
        if b'"tools"' not in received.body:
            titled.touch()
        return answer(received)

    with serving(choose) as server:
        desk.use(server, small_model="local/m", **UNCONFINED)
        ended = result(desk.run("run", "--format", "json", "hello"))
        assert desk.run("session", "fork").returncode == 0
    assert (ended["tokens"]["input"], ended["steps"]) == (300, 2)
    total = json.loads(desk.run("stats", "--json").stdout)["total"]
    assert (total["tokens"]["input"], total["steps"]) == (300, 2)
    assert total["cost"] == pytest.approx(ended["cost"]) == pytest.approx(0.00042)


def with_subagent(received: ReceivedRequest) -> Answer:
    """Choose answers for a parent that hands work on and waits for it, and for its subagent,
    which runs a command.
    """
    messages = received.json["messages"]
    results = [str(message["content"]) for message in messages if message["role"] == "tool"]
    if "hand it on" not in str(messages[1]["content"]):
        return HELLO if results else bash("echo found", "call_9")
    if not results:
        is_apart = "apart" in str(messages[1]["content"])
        work: dict[str, Any] = {
            "description": "d",
            "prompt": "the work",
            "subagent_type": "general",
            "run_in_background": is_apart,
        }
        return call("task", **work)
    started = re.search(r"ses_\w+", results[0])
    if 'state="done"' in results[-1] or "Started" not in results[0] or started is None:
        return HELLO
    number = f"call_{len(results) + 1}"
    if len(results) % 2:
        return bash(f"sleep 0.2; echo {number}", number)
    return call("task_output", call_id=number, task_id=started[0])


@pytest.mark.parametrize("prompt", ["hand it on", "hand it on, apart"])
def test_tokens_of_subagents_are_shown_and_bounded_like_their_dollars(
    tmp_path: Path, prompt: str
) -> None:
    desk = Desk(tmp_path)
    with serving(with_subagent) as server:
        desk.use(server)
        ended = result(desk.run("run", "--auto", "--title", "T", "--format", "json", prompt))
        requests = len(server.requests)
        assert ended["exitCode"] == 0, ended
        parent, child = stored(desk)
        assert child["tokens"]["input"] == 200
        assert (parent["tokens"]["input"], parent["cost"]) == (
            requests * 100,
            pytest.approx(requests * 0.00014),
        )
        assert ended["tokens"]["input"] == requests * 100
        total = json.loads(desk.run("stats", "--json").stdout)["total"]
        assert total["tokens"]["input"] == requests * 100
        limited = result(
            desk.run(
                "run", "--auto", "--title", "T", "--format", "json", "--max-tokens", "350", prompt
            )
        )
    assert (limited["exitCode"], limited["reason"]) == (4, "limit")
    assert "350 tokens" in limited["message"]
    # Three or four requests; one more where parent and subagent ask at once.
    assert limited["tokens"]["input"] in {300, 400, 500}


def test_a_compaction_shows_what_it_cost_and_counts(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(lambda received: HELLO if b'"tools"' in received.body else SUMMARY) as server:
        desk.use(server)
        first = result(desk.run("run", "--title", "T", "--format", "json", "hello"))
        done = desk.run("session", "compact")
        assert done.returncode == 0
        assert "300 in, 30 out · $0.0004" in done.stderr
        again = result(desk.run("run", "--continue", "--format", "json", "--command", "compact"))
    assert (again["tokens"]["input"], again["cost"]) == (300, pytest.approx(0.00036))
    (session,) = stored(desk)
    assert session["cost"] == pytest.approx(first["cost"] + 2 * 0.00036)
