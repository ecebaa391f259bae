"""A session of many messages, put into a project's database directly, as long work would have left it."""

import json
import sqlite3
import statistics
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from bench.figures import Bench
from bench.measure import Command, Sample, interleaved, median
from bench.requests import Request
from bench.server import Scenario, Server
from bench.subject import CODELOOP
from codeloop.schema.event import PartInfo, PartUpdated, SessionInfo, SessionUpdated, StoredEvent, make_message_updated
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

MESSAGES = 10_000
STEPS = 30
BATCH = 500
TAIL = 5
"""Turns since the last compaction: a session of that length has been compacted, or no model would take it."""
STEPPING = Scenario("steps", STEPS)


def fill(database: Path, session_id: str, messages: int) -> None:
    """Add `messages` messages to a session that is there: prompts, and answers each with one call."""
    store = Store(database)
    one = store.get_session(session_id)
    model = one.model or SessionModel(id="m", provider_id="bench")
    start = one.time.created - messages * 10 - 1_000
    events: list[StoredEvent] = []
    for number in range(messages // 2):
        events += _turn(one, model, number, start + number * 10)
        if len(events) >= BATCH:
            store.append(*events)
            events.clear()
    events += _compaction(one, model, one.time.created - 500)
    for number in range(messages // 2, messages // 2 + TAIL):
        events += _turn(one, model, number, one.time.created - 400 + (number - messages // 2) * 10)
    time = replace(one.time, updated=one.time.updated + 1)
    store.append(*events, SessionUpdated(properties=SessionInfo(session_id=one.id, info=replace(one, time=time))))
    store.close()


def _compaction(session: Session, model: SessionModel, at: int) -> Iterator[StoredEvent]:
    asked, said = _messages(session, model, at)
    said = replace(said, summary=True, agent="compaction", mode="compaction")
    parts: list[Part] = [
        CompactionPart(id=new_id("prt"), session_id=session.id, message_id=asked.id, auto=True),
        TextPart(
            id=new_id("prt"), session_id=session.id, message_id=said.id, text="NOTE: this is what was done. " * 50
        ),
    ]
    for info in (asked, said):
        yield make_message_updated(info)
    for part in parts:
        yield PartUpdated(properties=PartInfo(session_id=session.id, part=part, time=at))


def _turn(session: Session, model: SessionModel, number: int, at: int) -> Iterator[StoredEvent]:
    asked, said = _messages(session, model, at)
    for info in (asked, said):
        yield make_message_updated(info)
    for part in _parts(asked, said, number, at):
        yield PartUpdated(properties=PartInfo(session_id=session.id, part=part, time=at))


def _messages(session: Session, model: SessionModel, at: int) -> tuple[UserMessage, AssistantMessage]:
    named = ModelRef(provider_id=model.provider_id, model_id=model.id)
    asked = UserMessage(id=new_id("msg"), session_id=session.id, time=UserTime(created=at), agent="build", model=named)
    said = AssistantMessage(
        id=new_id("msg"),
        session_id=session.id,
        parent_id=asked.id,
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
    return asked, said


def _parts(asked: UserMessage, said: AssistantMessage, number: int, at: int) -> Iterator[Part]:
    session_id = said.session_id
    yield TextPart(id=new_id("prt"), session_id=session_id, message_id=asked.id, text=f"prompt {number}")
    yield StepStartPart(id=new_id("prt"), session_id=session_id, message_id=said.id)
    state = ToolStateCompleted(
        input={"command": f"echo {number}", "description": "Says it"},
        output=f"{number}\n" * 20,
        title="echo",
        metadata={},
        time=ToolTime(start=at + 2, end=at + 3),
    )
    yield ToolPart(
        id=new_id("prt"), session_id=session_id, message_id=said.id, call_id=f"old_{number}", tool="bash", state=state
    )
    yield TextPart(id=new_id("prt"), session_id=session_id, message_id=said.id, text=f"answer {number} " * 10)
    yield StepFinishPart(
        id=new_id("prt"), session_id=session_id, message_id=said.id, reason="stop", cost=0.0, tokens=said.tokens
    )


def sessions(bench: Bench) -> None:
    """Measure opening, exporting and forking a session of 10,000 messages, and a step in it against one in a new."""
    place = next((each for each in bench.places if each.subject.name == "codeloop"), None)
    if place is None:
        return
    with Server(STEPPING) as server:
        run = (CODELOOP, "run", "--auto", "--max-steps", "1000", "hi")
        _once(place.fill((*run[:-1], "--title", "New", "hi"), server.url))
        (database,) = place.home.rglob("codeloop.db")
        with closing(sqlite3.connect(database)) as connection:
            row = connection.execute("SELECT data FROM session ORDER BY updated DESC LIMIT 1").fetchone()
        session_id = json.loads(row[0])["id"]
        before = len(server.requests())
        new = server.requests()
        fill(database, session_id, MESSAGES)
        found = {name: place.fill((CODELOOP, *words)) for name, words in _commands(session_id).items()}
        for name, sample in _medians(found, bench.rounds).items():
            bench.put(place, name, sample.wall)
        ratios: list[float] = []
        for _ in range(bench.rounds):
            _once(place.fill((*run[:2], "-s", session_id, *run[2:]), server.url))
            late = server.requests()[before:]
            before = len(server.requests())
            ratios.append(_gap(late) / _gap(new))
        bench.put(place, "long-step", statistics.median(ratios))


def _commands(session_id: str) -> dict[str, tuple[str, ...]]:
    return {
        "long-show": ("session", "show", session_id),
        "long-export": ("export", session_id),
        "long-fork": ("session", "fork", session_id),
    }


def _once(command: Command) -> None:
    interleaved({"once": command}, 0)


def _medians(commands: dict[str, Command], rounds: int) -> dict[str, Sample]:
    return {name: median(samples) for name, samples in interleaved(commands, rounds).items()}


def _gap(seen: list[Request]) -> float:
    """Return the median time from an answer to the next request, in seconds."""
    return statistics.median(later.at - earlier.chosen for earlier, later in pairwise(seen))
