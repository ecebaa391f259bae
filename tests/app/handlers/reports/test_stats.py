"""Sums over what is stored."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from codeloop.agent.request import spending_sums
from codeloop.app.project import open_project
from codeloop.client.local import LocalClient
from codeloop.client.slash.reports import format_cost_report
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import PROMPT, Prompt, TextPartInput
from codeloop.schema.api.session_reports import SESSION_COST, SESSION_STATS, Stats, StatsQuery
from codeloop.schema.api.session_requests import SESSION_FORK, ForkSession, SessionId
from codeloop.schema.errors import OperationError
from codeloop.schema.event import (
    PartInfo,
    PartUpdated,
    StoredEvent,
    make_message_updated,
    make_session_created,
)
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.message import CacheTokens, Session, SessionTime, Tokens
from codeloop.schema.part import ToolPart, ToolStatePending
from codeloop.schema.wire import replace
from codeloop.store.ledger import open_ledger
from codeloop.store.store import Store
from tests.store.states import assistant, session, user
from tests.support.scripted_project import (
    ScriptedProject,
    both_clients,
    make_startup,
    open_scripted_project,
)

__all__ = ["both_clients"]

USED = Tokens(input=100, output=10, reasoning=1, cache=CacheTokens(read=5, write=2))


def filled(
    it: ScriptedProject,
    *,
    model: str = "m",
    days_ago: float = 0,
    tools: int = 0,
    parent: str | None = None,
) -> Session:
    """Store in the rig's project what `stored` does."""
    return stored(
        it.project.store, str(it.work), model=model, days_ago=days_ago, tools=tools, parent=parent
    )


def stored(
    store: Store,
    directory: str,
    *,
    model: str = "m",
    days_ago: float = 0,
    tools: int = 0,
    parent: str | None = None,
) -> Session:
    """Store a session with one prompt and one step of half a dollar, `days_ago`,
    with its row in the ledger.
    """
    now = now_ms() - int(days_ago * 86_400_000)
    made = replace(
        session(),
        id=new_id("ses"),
        parent_id=parent,
        directory=directory,
        time=SessionTime(created=now - 9, updated=now),
    )
    asked = replace(user(made.id, at=now), id=new_id("msg"))
    answer = replace(
        assistant(made.id, asked.id, at=now + 1, done=now + 2),
        id=new_id("msg"), model_id=model, provider_id="p", cost=0.5, tokens=USED,
    )  # fmt: skip
    parts = [
        ToolPart(
            id=new_id("prt"), session_id=made.id, message_id=answer.id, call_id="c", tool="bash",
            state=ToolStatePending(input={}, raw=""),
        )
        for _ in range(tools)
    ]  # fmt: skip
    events: list[StoredEvent] = [make_session_created(made)]
    events += [make_message_updated(info) for info in (asked, answer)]
    events += [
        PartUpdated(properties=PartInfo(session_id=made.id, part=part, time=1)) for part in parts
    ]
    store.append(*events)
    # Rows are added in any order here, so not by the ledger,
    # in which no row is dated before an earlier one.
    sql = """
        INSERT INTO spending VALUES
            (NULL, ?, ?, ?, ?, ?, '', ?, 'turn', 0.5, 100, 10, 1, 5, 2, 0, 0, ?, 0)"""
    store._db.execute(
        sql, (now + 1, made.id, parent or made.id, answer.id, directory, f"p/{model}", tools)
    )
    return made


async def stats(it: ScriptedProject, **args: Any) -> Stats:
    return await it.client.call(SESSION_STATS, StatsQuery(**args))


async def test_steps_are_added_up_by_day_model_and_project(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        assert (await stats(it)).total.steps == 0
        parent = filled(it, tools=2)
        filled(it, model="n", parent=parent.id)
        filled(it, days_ago=3, tools=1)
        found = await stats(it)
        total = found.total
        assert (total.sessions, total.steps, total.tool_calls, total.cost) == (2, 3, 3, 1.5)
        assert total.tokens == USED.plus(USED).plus(USED)
        today = datetime.now().astimezone()
        days = [f"{today - timedelta(days=ago):%Y-%m-%d}" for ago in (0, 3)]
        assert [(day.name, day.figures.steps) for day in found.days] == [(days[0], 2), (days[1], 1)]
        assert [(model.name, model.figures.cost) for model in found.models] == [
            ("p/m", 1.0),
            ("p/n", 0.5),
        ]
        assert [(project.name, project.figures.steps) for project in found.projects] == [
            (str(it.work), 3)
        ]


async def test_the_last_days_alone_can_be_asked_for(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        for ago in (0, 1, 2, 9):
            filled(it, days_ago=ago, tools=1)
        sums = [(await stats(it, days=days)).total for days in (1, 2, 3)]
        assert [(total.steps, total.tool_calls) for total in sums] == [(1, 1), (2, 2), (3, 3)]
        for days in (0, -1, 10**9):
            with pytest.raises(OperationError):
                await stats(it, days=days)


async def test_a_period_begins_at_midnight_also_before_a_change_of_the_clocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = datetime.now(UTC).timetuple().tm_yday
    # Clocks that were put forward by twelve hours some days ago,
    # so that the hour of the test does not matter.
    monkeypatch.setenv("TZ", f"AAA0BBB-12,{(day - 4) % 365}/0,{(day + 100) % 365}/0")
    time.tzset()
    try:
        async with open_scripted_project(tmp_path, []) as it:
            for quarter in range(20, 33):
                filled(it, days_ago=quarter / 4)
            first_day = (await stats(it, days=7)).days[-1].name
            assert first_day == f"{datetime.now().astimezone().date() - timedelta(days=6):%Y-%m-%d}"
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_a_fork_costs_nothing_by_itself(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        made = filled(it)
        copy = await it.client.call(SESSION_FORK, ForkSession(session_id=made.id))
        assert copy.cost == 0.5
        assert (await stats(it)).total.cost == 0.5
        costs = await it.client.call(SESSION_COST, SessionId(session_id=copy.id))
        assert (costs.cost, costs.before) == (0.0, 0.5)
        assert format_cost_report(costs)[-1].startswith("Not in it: $0.5000 that was paid before")


async def test_all_projects_are_added_up_and_what_can_not_be_read_is_named(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        filled(it)
        other = it.project.settings.paths.get_project_folder("0" * 40)
        store = Store(other / "codeloop.db")
        stored(store, "/p")
        store.close()
        damaged = it.project.settings.paths.get_project_folder("1" * 40)
        damaged.mkdir()
        (damaged / "codeloop.db").write_bytes(b"broken " * 1000)
        before = {
            path: path.read_bytes() for path in (other / "codeloop.db", damaged / "codeloop.db")
        }
        found = await stats(it, everything=True)
        assert found.total.steps == 2
        assert len(found.skipped) == 1
        assert str(damaged) in found.skipped[0]
        assert {path: path.read_bytes() for path in before} == before
        assert (await stats(it)).total.steps == 1


async def test_a_running_turn_does_not_wait_for_sums(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        filled(it)
        project = await open_project(make_startup(tmp_path / "home", it.work))
        try:
            assert (
                await LocalClient(project).call(SESSION_STATS, StatsQuery(everything=True))
            ).total.steps == 1
        finally:
            await project.close()


async def test_a_budget_that_is_used_up_ends_a_turn_before_its_request(tmp_path: Path) -> None:
    budget = {"month": 9.0, "project": {"day": 0.7}}
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="Hello.")], budget=budget
    ) as it:
        filled(it, days_ago=40)
        filled(it)
        asked = Prompt(session_id=it.session_id, parts=[TextPartInput(text="go")])
        first = await it.client.call(PROMPT, asked)
        assert first.stop is not None
        assert first.stop.reason == "done"
        filled(it)
        refused = await it.client.call(PROMPT, asked)
        assert refused.stop is not None
        assert refused.stop.reason == "limit"
        assert refused.stop.message.startswith(
            "`budget.project.day` is used up: $1.00 of $0.70 spent."
        )
        assert len(it.model.requests) == 1
        stats = await it.client.call(SESSION_STATS, StatsQuery())
    assert [(each.name, each.limit, each.spent) for each in stats.budgets] == [
        ("month", 9.0, 1.0),
        ("project.day", 0.7, 1.0),
    ]


async def test_a_month_of_a_budget_begins_at_midnight_also_before_a_change_of_the_clocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Clocks that were put forward by twelve hours on the second of this month.
    day = datetime.now(UTC).replace(day=1).timetuple().tm_yday
    monkeypatch.setenv("TZ", f"AAA0BBB-12,{day}/0,{(day + 100) % 365}/0")
    time.tzset()
    try:
        async with open_scripted_project(tmp_path, [], budget={"month": 9.0}) as it:
            first = (
                datetime.now()
                .astimezone()
                .replace(tzinfo=None, day=1, hour=0, minute=0, second=0, microsecond=0)
            )
            for hours in (-1, 1):
                filled(it, days_ago=(time.time() - first.timestamp() - hours * 3_600) / 86_400)
            assert [each.spent for each in (await stats(it)).budgets] == [0.5]
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_only_databases_that_have_changed_are_read_again_for_a_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def open_one(path: Path) -> Any:
        read.append(path.parent.name)
        return open_ledger(path)

    async with open_scripted_project(tmp_path, [], budget={"month": 9.0}) as it:
        filled(it)
        own = it.project.store.path
        other = Store(own.parent.with_name("x") / own.name)
        stored(other, "/elsewhere")
        other.close()
        monkeypatch.setattr(spending_sums, "open_ledger", open_one)
        assert [each.spent for each in (await stats(it)).budgets] == [1.0]
        assert sorted(read) == sorted([own.parent.name, "x"])
        read.clear()
        assert [each.spent for each in (await stats(it)).budgets] == [1.0]
        assert read == []
        filled(it)
        assert [each.spent for each in (await stats(it)).budgets] == [1.5]
        assert read == [own.parent.name]
        (it.project.settings.paths.cache / "spending.json").write_text("{broken")
        assert [each.spent for each in (await stats(it)).budgets] == [1.5]
