"""Many subagents: asked about once, bounded in number and in dollars over restarts,
and run by a model of their own.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import KEY, Desk, result, serving
from tests.support.answers import Answer, Call
from tests.support.http_connection import ReceivedRequest

PRICE = (100 * 1.0 + 20 * 2.0) / 1e6
"""Dollars of a request, as the server counts it and `Desk.use` prices it."""


def tasks(number: int, first: int = 0) -> Answer:
    """Return an answer that starts so many subagents at once."""
    given = [
        {"description": f"Job {at}", "prompt": f"Do job {at}.", "subagent_type": "general"}
        for at in range(first, first + number)
    ]
    return Answer(
        calls=tuple(
            Call("task", json.dumps(each), f"t{first + at}") for at, each in enumerate(given)
        )
    )


def crowd(*answers: Answer) -> Callable[[ReceivedRequest], Answer]:
    """Answer the session that delegates with one answer after the other,
    its subagents with a word.
    """
    left = [*answers]

    def choose(received: ReceivedRequest) -> Answer:
        if b'"tools"' not in received.body:
            return Answer(text="A title")
        if b"Do job " in received.body and b"crowd" not in received.body:
            return Answer(text="Job done.")
        return left.pop(0) if len(left) > 1 else left[0]

    return choose


def run(desk: Desk, *flags: str) -> dict[str, Any]:
    return result(desk.run("run", "--format", "json", *flags, "delegate to a crowd"))


def jobs(server: Any) -> list[ReceivedRequest]:
    """Return the requests of subagents."""
    return [
        each for each in server.requests if b"Do job " in each.body and b"crowd" not in each.body
    ]


@pytest.mark.slow
def test_more_subagents_than_four_are_asked_about_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(crowd(tasks(7), Answer(text="Over."))) as server:
        desk.use(server)
        refused = run(desk)
        assert len(jobs(server)) == 4
        assert [each["tool"] for each in refused["denied"]] == ["task"], "asked once"
        assert refused["exitCode"] == 5
        assert server.requests[-1].body.count(b"this turn may start no more than 4 subagents") == 2
    with serving(crowd(tasks(7), tasks(2, 7), Answer(text="Over."))) as server:
        desk.use(server)
        allowed = run(desk, "--auto")
        assert (allowed["exitCode"], len(jobs(server))) == (0, 9)
    with serving(crowd(tasks(3), Answer(text="Over."))) as server:
        desk.use(server, subagents={"ask": 2})
        assert len(run(desk)["denied"]) == 1


@pytest.mark.slow
def test_a_session_with_its_subagents_never_spends_more_than_one_request_above_its_limit(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    most = 6 * PRICE
    with serving(
        crowd(tasks(4), tasks(4, 4), tasks(4, 8), tasks(4, 12), Answer(text="Over."))
    ) as server:
        desk.use(server, subagents={"cost": most, "ask": 100})
        first = run(desk)
        assert (first["exitCode"], first["reason"]) == (4, "limit"), first
        assert "limit of a session with its subagents" in first["message"]
        # Another process: what was spent is stored.
        again = run(desk, "--session", first["sessionID"])
        assert again["exitCode"] == 4
        sent = len([each for each in server.requests if b'"tools"' in each.body])
    assert 6 <= sent <= 7, "titles count too, but are not held back"
    assert first["cost"] + again["cost"] <= most + 2 * PRICE


@pytest.mark.slow
def test_a_session_starts_no_more_subagents_than_it_may_also_after_a_restart(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    with serving(
        crowd(tasks(3), Answer(text="Over."), tasks(3, 3), Answer(text="Over."))
    ) as server:
        desk.use(server, subagents={"most": 4})
        first = run(desk)
        run(desk, "--session", first["sessionID"])
        assert len(jobs(server)) == 4
        assert b"The limit of 4 subagents of a session is reached" in server.requests[-1].body


@pytest.mark.slow
def test_subagents_are_run_by_the_model_of_their_row(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(crowd(tasks(1), Answer(text="Over."))) as server:
        limit = {"context": 200_000, "output": 8_000}
        models = {name: {"limit": limit, "tool_call": True} for name in ("dear", "cheap")}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": server.url, "apiKey": KEY},
        }
        desk.configure(
            provider={"local": {**provider, "models": models}},
            model="local/dear",
            subagents={"model": "local/cheap"},
        )
        assert run(desk)["exitCode"] == 0
        (job,) = jobs(server)
        assert job.json["model"] == "cheap"
        assert server.requests[-1].json["model"] == "dear"
