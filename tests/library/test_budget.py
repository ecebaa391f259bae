"""A budget that several sessions share: the sum of what they spend does not pass it."""

import asyncio
import json
from collections.abc import Generator
from contextlib import AsyncExitStack
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import codeloop
from codeloop import sync
from codeloop.agent.request.shared_budget import SharedBudget
from codeloop.app.app import App
from codeloop.server.server import ListenOptions, Server
from tests.cli.program import serving, steps
from tests.support.answers import Answer, Call, Counts
from tests.support.model_server import ModelServer
from tests.support.patient_limits import LONG_LIMIT
from tests.support.programs import make_provider_config
from tests.support.scripted_project import PASSWORD, make_startup

A_CALL = 0.0055
SLOW = Answer(text="Done.", counts=Counts(input=550, output=0), delay=0.03)
LOOKS = Answer(
    calls=(Call("glob", json.dumps({"pattern": "*"})),), counts=Counts(input=550, output=0)
)
DELEGATES = Answer(
    calls=(
        Call(
            "task",
            json.dumps(
                {"description": "look", "prompt": "look around", "subagent_type": "explore"}
            ),
            "call_2",
        ),
    ),
    counts=Counts(input=550, output=0),
)


@pytest.fixture(autouse=True)
def patient_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no answer end without its counts of tokens,
    for which a model otherwise waits some seconds.
    """
    monkeypatch.setattr("codeloop.model.wire.http_model.MODEL_TAIL_TIME", LONG_LIMIT)


@pytest.fixture
def model() -> Generator[ModelServer]:
    with serving(steps(SLOW)) as server:
        yield server


def settings(model: ModelServer) -> dict[str, Any]:
    """Return a configuration whose model costs 10 dollars a million tokens that it reads."""
    provider = make_provider_config(model.url, "coder")
    provider["models"]["coder"] = {
        **provider["models"]["coder"],
        "cost": {"input": 10, "output": 0},
    }
    return {
        "model": "mine/coder",
        "provider": {"mine": provider},
        "agent": {"title": {"disable": True}},
    }


def opened(tmp_path: Path, name: str, model: ModelServer, budget: codeloop.Budget) -> Any:
    (tmp_path / name).mkdir(exist_ok=True)
    start = make_startup(tmp_path / "home", tmp_path / name, **settings(model))
    return codeloop.open(
        tmp_path / name, settings=start.settings, environment=start.environment, budget=budget
    )


async def costs(work: "list[Any]") -> tuple[float, int, list[str]]:
    """Wait for turns; return what they cost together, how many came to their end,
    and what the others say.
    """
    found = await asyncio.gather(*work, return_exceptions=True)
    done = [each for each in found if isinstance(each, codeloop.Answer)]
    refused = [each for each in found if isinstance(each, codeloop.LimitReached)]
    assert len(done) + len(refused) == len(found), found
    return sum(each.cost for each in done), len(done), [str(each) for each in refused]


@pytest.mark.slow
async def test_twenty_folders_at_once_spend_no_more_than_their_budget(
    tmp_path: Path, model: ModelServer
) -> None:
    budget = codeloop.Budget(cost=0.05)
    async with AsyncExitStack() as stack:
        projects = [
            await stack.enter_async_context(opened(tmp_path, f"work{number}", model, budget))
            for number in range(20)
        ]
        spent, done, refused = await costs([project.ask("say hello") for project in projects])
        assert spent == pytest.approx(9 * A_CALL)
        assert (done, len(refused)) == (9, 11)
        assert len(model.requests) == 9, "nothing else was asked"
        assert budget.spent == pytest.approx(spent)
        assert refused[0] == (
            "The shared budget of $0.05 is used up: $0.0495 spent, and a call has cost up to $0.0055."
        )


async def test_sessions_on_a_server_share_a_budget(tmp_path: Path, model: ModelServer) -> None:
    (tmp_path / "work").mkdir()
    server = Server(
        App(make_startup(tmp_path / "home", tmp_path / "work", **settings(model))),
        ListenOptions(password=PASSWORD),
    )
    await server.start()
    budget = codeloop.Budget(cost=0.03)
    try:
        async with (
            codeloop.connect(server.url, password=PASSWORD, budget=budget) as one,
            codeloop.connect(server.url, password=PASSWORD, budget=budget) as other,
        ):
            spent, done, _ = await costs(
                [project.ask("say hello") for project in (one, other) for _ in range(5)]
            )
            assert spent == pytest.approx(5 * A_CALL)
            assert done == 5
            assert budget.spent == pytest.approx(spent)
    finally:
        await server.stop()


async def test_a_turn_whose_prompt_makes_an_undo_final_costs_what_it_used(
    tmp_path: Path, model: ModelServer
) -> None:
    budget = codeloop.Budget(cost=0.03)
    async with opened(tmp_path, "work", model, budget) as project:
        session = await project.session()
        for _ in range(2):
            assert (await session.ask("say hello")).cost == pytest.approx(A_CALL)
            await session.undo()
        assert budget.spent == pytest.approx(2 * A_CALL)


async def test_steps_and_subagents_count_and_the_turn_ends_with_a_limit(tmp_path: Path) -> None:
    budget = codeloop.Budget(cost=0.05)
    with serving(steps(LOOKS, DELEGATES, LOOKS)) as model:
        async with (
            opened(tmp_path, "work", model, budget) as project,
            opened(tmp_path, "two", model, budget) as two,
        ):
            work = [
                each.ask("look", limits=codeloop.TurnLimits(seconds=60)) for each in (project, two)
            ]
            found = await asyncio.gather(*work, return_exceptions=True)
    assert [type(each) for each in found] == [codeloop.LimitReached] * 2
    assert budget.spent == pytest.approx(9 * A_CALL)
    answers = [each.answer for each in found if isinstance(each, codeloop.LimitReached)]
    assert sum(each.cost for each in answers) == pytest.approx(9 * A_CALL)
    assert {each.reason for each in answers} == {"limit"}


def test_threads_share_a_budget(tmp_path: Path, model: ModelServer) -> None:
    budget = codeloop.Budget(cost=0.02)
    ends: list[str] = []

    def work(name: str) -> None:
        (tmp_path / name).mkdir()
        start = make_startup(tmp_path / "home", tmp_path / name, **settings(model))
        with sync.open(
            tmp_path / name, settings=start.settings, environment=start.environment, budget=budget
        ) as project:
            try:
                ends.append(project.ask("say hello").reason)
            except codeloop.LimitReached as error:
                ends.append(error.answer.reason)

    threads = [Thread(target=work, args=(f"work{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(ends) == ["done"] * 3 + ["limit"] * 3
    assert budget.spent == pytest.approx(3 * A_CALL)


async def test_a_call_that_fails_or_is_given_up_keeps_nothing_from_the_others() -> None:
    budget = SharedBudget(1.0)
    async with budget.reserve("ses_1", "a/b") as is_affordable:
        assert is_affordable
        given_up = asyncio.create_task(budget.reserve("ses_2", "a/b").__aenter__())
        await asyncio.sleep(0)
        given_up.cancel()
        waiting = asyncio.create_task(budget.reserve("ses_3", "a/b").__aenter__())
        await asyncio.sleep(0)
        assert not waiting.done(), "what a call of this model costs is not known yet"
    assert await waiting
    budget.pay(0.4)
    budget.end_call("ses_3", 0.4)
    async with budget.reserve("ses_4", "a/b") as is_affordable:
        assert is_affordable


@pytest.mark.parametrize("cost", [0.0, -1.0])
async def test_an_empty_budget_asks_no_model(
    tmp_path: Path, model: ModelServer, cost: float
) -> None:
    async with opened(tmp_path, "work", model, codeloop.Budget(cost=cost)) as project:
        with pytest.raises(codeloop.LimitReached, match=r"is used up: \$0\.00 spent"):
            await project.ask("say hello")
    assert model.requests == []
