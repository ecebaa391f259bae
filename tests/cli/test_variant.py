"""How much a model thinks: what is chosen arrives at the service, is stored,
and is kept by the session.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import ADAPTER, KEY, Desk, Protocol, call, serving, steps
from tests.support.answers import Answer
from tests.support.model_server import ModelServer

HELLO = Answer(text="Hello.")


def use(desk: Desk, server: ModelServer, protocol: Protocol = "openai", **more: Any) -> None:
    """Make a model that reasons the one that is used, without a small one for titles."""
    model = {
        "reasoning": True,
        "limit": {"context": 200_000, "output": 64_000},
        **more.pop("row", {}),
    }
    provider = {
        "npm": ADAPTER[protocol],
        "options": {"baseURL": server.url, "apiKey": KEY},
        "models": {"m": model},
    }
    desk.configure(provider={"local": provider}, model="local/m", **more)


def messages(desk: Desk) -> list[dict[str, Any]]:
    return [each["info"] for each in json.loads(desk.run("export").stdout)["messages"]]


def test_the_effort_is_sent_stored_and_kept_by_the_session(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([HELLO]) as server:
        use(desk, server)
        for flags in (
            ("--title", "T", "--variant", "high"),
            ("-c",),
            ("-c", "--variant", "default"),
            ("-c",),
        ):
            assert desk.run("run", *flags, "hello").returncode == 0
        bodies = [each.json for each in server.requests]
    assert [body.get("reasoning_effort") for body in bodies] == ["high", "high", None, None]
    user, answer, *_ = found = messages(desk)
    assert user["model"] == {"providerID": "local", "modelID": "m", "variant": "high"}
    assert answer["variant"] == "high"
    assert [each["model"].get("variant") for each in found if each["role"] == "user"] == [
        "high",
        "high",
        None,
        None,
    ]


def test_without_one_a_request_is_what_it_was_and_with_one_only_the_effort_is_added(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    with serving([HELLO]) as server:
        use(desk, server)
        for flags in ((), ("--variant", "low")):
            assert desk.run("run", "--title", "T", *flags, "hello").returncode == 0
        plain, chosen = (each.body for each in server.requests)
    assert b"reasoning_effort" not in plain
    assert (
        chosen.replace(b'"reasoning_effort":"low",', b"").partition(b'"tools"')[2]
        == plain.partition(b'"tools"')[2]
    )
    assert chosen.count(b'"reasoning_effort":"low"') == 1


@pytest.mark.parametrize(
    ("name", "budget", "most"), [("high", 16_000, 32_000), ("max", 32_000, 64_000)]
)
def test_a_budget_to_think_is_within_what_the_model_may_say(
    tmp_path: Path, name: str, budget: int, most: int
) -> None:
    desk = Desk(tmp_path)
    with serving([HELLO]) as server:
        use(desk, server, "anthropic")
        assert desk.run("run", "--title", "T", "--variant", name, "hello").returncode == 0
        body = server.requests[0].json
    assert body["thinking"] == {"type": "enabled", "budget_tokens": budget}
    assert body["max_tokens"] == most


def test_an_unknown_one_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([HELLO]) as server:
        use(
            desk,
            server,
            row={"variants": {"terse": {"reasoningEffort": "low"}, "low": {"disabled": True}}},
        )
        done = desk.run("run", "--variant", "low", "hello")
        assert server.requests == []
        assert done.returncode == 3
        assert "`local/m` has no variant `low`." in done.stderr
        assert "It has medium, high, terse, and default for none of them." in done.stderr
        assert desk.run("session", "list", "--json").stdout.strip() == "[]"


def test_agents_and_commands_bring_their_own_and_what_is_asked_for_comes_first(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    agents = {
        "deep": {"mode": "primary", "model": "local/m", "variant": "high"},
        "helper": {
            "mode": "subagent",
            "model": "local/m",
            "variant": "medium",
            "description": "Helps.",
        },
        "wrong": {"mode": "primary", "model": "local/m", "variant": "hihg"},
    }
    task = call("task", description="d", prompt="sub", subagent_type="helper")
    with serving(steps(task, HELLO)) as server:
        use(desk, server, agent=agents, command={"go": {"template": "go", "variant": "low"}})
        wrong = desk.run("run", "--agent", "wrong", "hello")
        assert (wrong.returncode, "It is chosen by `variant` at " in wrong.stderr) == (3, True), (
            wrong.stderr
        )
        runs = (("--agent", "deep"), ("--agent", "deep", "--variant", "low"), ("--command", "go"))
        for flags in runs:
            assert desk.run("run", "--title", "T", *flags, "hello").returncode == 0
        sent = [each.json for each in server.requests]
    efforts = [
        body.get("reasoning_effort") for body in sent if body["messages"][1]["content"] != "sub"
    ]
    assert efforts == ["high", "high", "low", "low", "low", "low"]
    assert {
        body.get("reasoning_effort") for body in sent if body["messages"][1]["content"] == "sub"
    } == {"medium"}
