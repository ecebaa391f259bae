"""Another model takes over where a model's service fails: what is decided,
and the real program with two services.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from codeloop.agent.engine import TurnSettings
from codeloop.agent.moves import AskModel, FallBack, Stop, decide_next_move
from codeloop.schema.errors import APIError, APIErrorData
from codeloop.schema.message import ModelRef, Session
from codeloop.schema.wire import replace
from codeloop.store.conversation import Conversation, Entry
from tests.cli.program import Desk, serving
from tests.store.states import assistant, session, user
from tests.support.answers import Answer, Call

SESSION: Session = session()
BUSY = APIError(data=APIErrorData(message="The service is overloaded.", is_retryable=True))
BROKE = APIError(
    data=APIErrorData(message="No credit.", is_retryable=False, metadata={"kind": "credit"})
)
WRONG = APIError(data=APIErrorData(message="No such field.", is_retryable=False))


def turn(asked: str, answered: str, error: APIError, *, summary: bool = False) -> Conversation:
    """Return a turn whose last answer failed: the model of the prompt by now,
    and the one that answered.
    """
    prompt = user(SESSION.id, at=1)
    provider, _, model = asked.partition("/")
    prompt = replace(prompt, model=ModelRef(provider_id=provider, model_id=model))
    provider, _, model = answered.partition("/")
    answer = replace(
        assistant(SESSION.id, prompt.id, at=2, done=2), provider_id=provider, model_id=model
    )
    return Conversation(
        SESSION, (Entry(prompt), Entry(replace(answer, error=error, summary=summary or None)))
    )


@pytest.mark.parametrize(
    ("asked", "answered", "error", "model"),
    [
        ("a/1", "a/1", BUSY, "b/1"),
        ("a/1", "a/1", BROKE, "b/1"),
        ("b/1", "b/1", BUSY, "c/1"),
        ("c/1", "c/1", BUSY, None),
        ("a/1", "a/1", WRONG, None),
    ],
)
def test_the_model_after_the_failed_one_takes_over(
    asked: str, answered: str, error: APIError, model: str | None
) -> None:
    move = decide_next_move(
        turn(asked, answered, error), TurnSettings(fallback_models=("b/1", "c/1"))
    )
    if model is None:
        assert isinstance(move, Stop)
    else:
        assert isinstance(move, FallBack)
        assert (move.model, move.reason) == (model, error.data.message)


@pytest.mark.parametrize(
    ("asked", "answered", "goes_on"),
    [
        ("b/1", "a/1", True),
        ("c/1", "b/1", True),
        ("b/1", "c/1", False),
        ("z/1", "a/1", False),
    ],
)
def test_a_model_that_took_over_is_asked_and_none_before_it_again(
    asked: str, answered: str, goes_on: bool
) -> None:
    move = decide_next_move(
        turn(asked, answered, BUSY), TurnSettings(fallback_models=("b/1", "c/1"))
    )
    assert isinstance(move, AskModel if goes_on else Stop)


def test_a_summary_that_failed_stays_failed() -> None:
    move = decide_next_move(
        turn("b/1", "a/1", BUSY, summary=True), TurnSettings(fallback_models=("b/1",))
    )
    assert isinstance(move, Stop)


def provider(url: str) -> dict[str, Any]:
    models = {"m": {"tool_call": True, "limit": {"context": 100_000, "output": 4_000}}}
    return {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": url, "apiKey": "k"},
        "models": models,
    }


@pytest.mark.slow
def test_the_turn_goes_on_with_the_next_model_and_says_so(tmp_path: Path) -> None:
    desk = Desk(tmp_path, limits={"MODEL_BACKOFF": 1})
    step = Answer(text="Looking.", calls=(Call("bash", '{"command": "echo seen"}'),))
    broken = Answer(status=402, body=json.dumps({"error": {"message": "Insufficient credits"}}))
    with serving([step, broken]) as first, serving([Answer(text="Second here.")]) as second:
        names = {"one": provider(first.url), "two": provider(second.url)}
        desk.configure(
            model="one/m", provider=names, fallback=["gone/m", "two/m"], permission="allow"
        )
        done = desk.run("run", "--format", "json", "--auto", "go")
        assert done.returncode == 0, done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert events[-1]["text"] == "Second here."
        assert len(first.requests) == 2
        history = json.dumps(json.loads(second.requests[0].body)["messages"])
        assert "seen" in history, "the work of the first model is not lost"
        desk.configure(model="one/m", provider=names, fallback=["gone/m"], permission="allow")
        failed = desk.run("run", "go")
        assert failed.returncode == 3
        assert "one has no credit left" in failed.stderr
        found = json.loads(desk.run("doctor", "--json").stdout)
        assert [each["state"] for each in found if each["name"] == "fallback"] == ["warning"]
