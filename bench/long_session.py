"""Measures a session of 10,000 messages, which `fill_session` writes straight
into the store of a project.
"""

import json
import sqlite3
import statistics
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from bench.bench_run import BenchRun
from bench.process_runner import run_command
from bench.recorded_requests import RecordedRequest
from bench.scenario_server import Scenario, ScenarioServer
from bench.subjects import CODELOOP
from codeloop.schema.event import (
    PartInfo,
    PartUpdated,
    SessionInfo,
    SessionUpdated,
    StoredEvent,
    make_message_updated,
)
from codeloop.schema.ids import new_id
from codeloop.schema.message import (
    AssistantMessage,
    AssistantTime,
    CacheTokens,
    MessagePath,
    ModelRef,
    Session,
    SessionModel,
    Tokens,
    UserMessage,
    UserTime,
)
from codeloop.schema.part import (
    CompactionPart,
    Part,
    StepFinishPart,
    StepStartPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolTime,
)
from codeloop.schema.wire import replace
from codeloop.store.store import Store

MESSAGE_COUNT = 10_000
STEP_COUNT = 30
EVENTS_PER_APPEND = 500
TURNS_AFTER_COMPACTION = 5
"""A session of such a length must have been compacted: no model would take all of its messages."""
STEP_SCENARIO = Scenario("steps", STEP_COUNT)


def fill_session(database: Path, session_id: str, messages: int) -> None:
    """Add `messages` messages to an existing session: prompts, and answers with one call each.

    They are followed by a compaction and `TURNS_AFTER_COMPACTION` turns.
    """
    store = Store(database)
    session = store.get_session(session_id)
    model = session.model or SessionModel(id="m", provider_id="bench")
    # The messages are older than the session's own last one, so they come before it.
    start = session.time.created - messages * 10 - 1_000
    events: list[StoredEvent] = []
    for number in range(messages // 2):
        events += _make_turn(session, model, number, start + number * 10)
        if len(events) >= EVENTS_PER_APPEND:
            store.append(*events)
            events.clear()
    events += _make_compaction(session, model, session.time.created - 500)
    for number in range(messages // 2, messages // 2 + TURNS_AFTER_COMPACTION):
        events += _make_turn(
            session, model, number, session.time.created - 400 + (number - messages // 2) * 10
        )
    time = replace(session.time, updated=session.time.updated + 1)
    store.append(
        *events,
        SessionUpdated(
            properties=SessionInfo(session_id=session.id, info=replace(session, time=time))
        ),
    )
    store.close()


def _make_compaction(session: Session, model: SessionModel, at: int) -> Iterator[StoredEvent]:
    prompt, answer = _make_messages(session, model, at)
    answer = replace(answer, summary=True, agent="compaction", mode="compaction")
    parts: list[Part] = [
        CompactionPart(id=new_id("prt"), session_id=session.id, message_id=prompt.id, auto=True),
        TextPart(
            id=new_id("prt"),
            session_id=session.id,
            message_id=answer.id,
            text="NOTE: this is what was done. " * 50,
        ),
    ]
    for info in (prompt, answer):
        yield make_message_updated(info)
    for part in parts:
        yield PartUpdated(properties=PartInfo(session_id=session.id, part=part, time=at))


def _make_turn(
    session: Session, model: SessionModel, number: int, at: int
) -> Iterator[StoredEvent]:
    prompt, answer = _make_messages(session, model, at)
    for info in (prompt, answer):
        yield make_message_updated(info)
    for part in _make_parts(prompt, answer, number, at):
        yield PartUpdated(properties=PartInfo(session_id=session.id, part=part, time=at))


def _make_messages(
    session: Session, model: SessionModel, at: int
) -> tuple[UserMessage, AssistantMessage]:
    model_ref = ModelRef(provider_id=model.provider_id, model_id=model.id)
    prompt = UserMessage(
        id=new_id("msg"),
        session_id=session.id,
        time=UserTime(created=at),
        agent="build",
        model=model_ref,
    )
    answer = AssistantMessage(
        id=new_id("msg"),
        session_id=session.id,
        parent_id=prompt.id,
        model_id=model.id,
        provider_id=model.provider_id,
        mode="build",
        agent="build",
        path=MessagePath(cwd=session.directory, root=session.directory),
        cost=0.0,
        tokens=Tokens(input=100, output=20, reasoning=0, cache=CacheTokens(read=0, write=0)),
        time=AssistantTime(created=at + 1, completed=at + 5),
        finish="stop",
    )
    return prompt, answer


def _make_parts(
    prompt: UserMessage, answer: AssistantMessage, number: int, at: int
) -> Iterator[Part]:
    session_id = answer.session_id
    yield TextPart(
        id=new_id("prt"), session_id=session_id, message_id=prompt.id, text=f"prompt {number}"
    )
    yield StepStartPart(id=new_id("prt"), session_id=session_id, message_id=answer.id)
    state = ToolStateCompleted(
        input={"command": f"echo {number}", "description": "Says it"},
        output=f"{number}\n" * 20,
        title="echo",
        metadata={},
        time=ToolTime(start=at + 2, end=at + 3),
    )
    yield ToolPart(
        id=new_id("prt"),
        session_id=session_id,
        message_id=answer.id,
        call_id=f"old_{number}",
        tool="bash",
        state=state,
    )
    yield TextPart(
        id=new_id("prt"), session_id=session_id, message_id=answer.id, text=f"answer {number} " * 10
    )
    yield StepFinishPart(
        id=new_id("prt"),
        session_id=session_id,
        message_id=answer.id,
        reason="stop",
        cost=0.0,
        tokens=answer.tokens,
    )


def measure_long_session(bench: BenchRun) -> None:
    """Measure showing, exporting and forking a session of 10,000 messages,
    and a step against one in a new session.
    """
    installation = bench.codeloop
    with ScenarioServer(STEP_SCENARIO) as server:
        run = (CODELOOP, "run", "--auto", "--max-steps", "1000")
        run_command(installation.fill((*run, "--title", "New", "hi"), server.url))
        (database,) = installation.home.rglob("codeloop.db")
        with closing(sqlite3.connect(database)) as connection:
            row = connection.execute(
                "SELECT data FROM session ORDER BY updated DESC LIMIT 1"
            ).fetchone()
        session_id = json.loads(row[0])["id"]
        new = server.read_requests()
        before = len(new)
        fill_session(database, session_id, MESSAGE_COUNT)
        commands = {
            "long-show": installation.fill((CODELOOP, "session", "show", session_id)),
            "long-export": installation.fill((CODELOOP, "export", session_id)),
            "long-fork": installation.fill((CODELOOP, "session", "fork", session_id)),
        }
        for name, sample in bench.measure_medians(commands).items():
            bench.put_own(name, sample.wall)
        ratios: list[float] = []
        for _ in range(bench.rounds):
            run_command(installation.fill((*run, "-s", session_id, "hi"), server.url))
            late = server.read_requests()[before:]
            before = len(server.read_requests())
            ratios.append(_measure_step(late) / _measure_step(new))
        bench.put_own("long-step", statistics.median(ratios))


def _measure_step(requests: list[RecordedRequest]) -> float:
    """Return the median time from an answer to the next request, in seconds."""
    return statistics.median(
        later.received_at - earlier.answered_at for earlier, later in pairwise(requests)
    )
