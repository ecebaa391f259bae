"""The bench's model server: any number of sessions, each step by step, noted as they come."""

import json
from typing import Any
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

from bench.scenario_server import Scenario, ScenarioServer

TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]


def ask(
    url: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None
) -> list[dict[str, Any]]:
    """Return the deltas of a streamed answer."""
    body = json.dumps(
        {"model": "m", "stream": True, "messages": messages, **({"tools": tools} if tools else {})}
    )
    request = HttpRequest(
        f"{url}/chat/completions", body.encode(), {"content-type": "application/json"}
    )
    with urlopen(request, timeout=60) as answer:
        events = [
            line[6:] for line in answer.read().decode().splitlines() if line.startswith("data: {")
        ]
    return [choice["delta"] for event in events for choice in json.loads(event)["choices"]]


def said(deltas: list[dict[str, Any]]) -> str:
    return "".join(delta.get("content") or "" for delta in deltas)


def commands(deltas: list[dict[str, Any]]) -> str:
    return "".join(
        call["function"].get("arguments", "")
        for delta in deltas
        for call in delta.get("tool_calls", ())
    )


USER = {"role": "user", "content": "hi"}
CALLED = {"role": "assistant", "content": "", "tool_calls": [{"id": "call_1"}]}


def test_each_step_is_another_call_and_the_last_answer_is_text() -> None:
    with ScenarioServer(Scenario("steps", 2)) as server:
        first = ask(server.url, [USER], TOOLS)
        second = ask(server.url, [USER, CALLED], TOOLS)
        last = ask(server.url, [USER, CALLED, CALLED], TOOLS)
    assert json.loads(commands(first))["command"] == "echo step 1"
    assert json.loads(commands(second))["command"] == "echo step 2"
    assert (said(last), commands(last)) == ("Done.", "")


def test_deltas_come_in_the_number_asked_for() -> None:
    with ScenarioServer(Scenario("deltas", 300)) as server:
        deltas = ask(server.url, [USER], TOOLS)
    assert said(deltas) == "word " * 300
    assert sum(bool(delta.get("content")) for delta in deltas) == 300


def test_requests_of_the_loop_are_noted_with_their_bodies_and_in_order() -> None:
    with ScenarioServer(Scenario("answer"), keep_bodies=True) as server:
        ask(server.url, [USER], TOOLS)
        ask(server.url, [USER], None)
        ask(server.url, [USER, USER], TOOLS)
        noted = server.read_requests()
    assert [len(json.loads(request.body)["messages"]) for request in noted] == [1, 2]
    assert noted[0].received_at < noted[1].received_at


def test_nothing_is_noted_before_the_first_request() -> None:
    with ScenarioServer(Scenario("answer")) as server:
        assert server.read_requests() == []
