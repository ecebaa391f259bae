"""F27: whatever happens to a client of the event streams,
after it has come again its state is the store's.
"""

import asyncio
import contextlib
import random
import re
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from codeloop.app.models.open_models import SingleModel
from codeloop.app.project import open_project
from codeloop.client.local import LocalClient
from codeloop.model.chat import ModelEvent, ModelInfo, ModelRequest
from codeloop.model.testing.replay import SCRIPT_INFO, ScriptedModel
from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from codeloop.schema.api.session_inputs import PROMPT, Prompt, TextPartInput
from codeloop.schema.api.session_requests import (
    SESSION_CREATE,
    SESSION_DELETE,
    CreateSession,
    SessionId,
)
from codeloop.schema.bounds.server import SERVER_STREAM_EVENTS
from codeloop.schema.limits import STORE_EVENTS
from codeloop.schema.live_events import Delta, FileEdited, FilePath, PartDelta
from codeloop.schema.wire import replace
from codeloop.server.events.hub import Hub, get_project_id
from codeloop.server.events.subscriber import Subscriber
from codeloop.store.outbox import PRUNE_INTERVAL
from codeloop.store.store import Store
from tests.server.support.serving import Served, served
from tests.server.support.streaming import Mirror, Stream, connected, following, held
from tests.store.states import updated
from tests.support.examples import scale_examples
from tests.support.scripted_project import make_startup, wait_until

LISTS = ScriptedAnswer(text="I look about.", calls=(ScriptedCall("list", {"path": "."}, "call_1"),))
DONE = ScriptedAnswer(text="That is all there is, and there is no more of it.", deltas=10)
ROUTES = pytest.mark.parametrize("path", ["/event", "/global/event"])


class Slowly:
    """A model that lets others have their turn between its words."""

    def __init__(self, answers: list[ScriptedAnswer]) -> None:
        self._inner = ScriptedModel(answers, SCRIPT_INFO)

    @property
    def info(self) -> ModelInfo:
        return self._inner.info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        async for event in self._inner.stream(request):
            yield event
            await asyncio.sleep(0.002)


async def converged(stream: Stream, mirror: Mirror, store: Store, deadline: float = 60) -> None:
    """Apply what comes until the state is the store's; fails when it never is."""
    async with asyncio.timeout(deadline):
        while mirror.state != held(store).state:
            mirror.apply(await stream.next(deadline))


@ROUTES
@pytest.mark.parametrize("every", [1, 2, 3, 7])
async def test_a_client_that_drops_every_few_events_misses_none_and_sees_none_twice(
    tmp_path: Path, path: str, every: int
) -> None:
    async with served(tmp_path, Slowly([LISTS, DONE])) as it:
        mirror, places, place = Mirror(), list[str](), "0"
        store = (await it.project()).store
        turn = asyncio.create_task(it.prompt(await it.session()))
        while not turn.done() or number(places) != store.read_last_seq():
            async with following(it, path, place) as stream:
                await stream.next()
                with contextlib.suppress(TimeoutError):  # there are no more
                    for _ in range(every):
                        mirror.apply(await stream.next(0.5))
                assert stream.place is not None
                place = stream.place
                places += stream.places[1:]
        assert [number([each]) for each in places] == list(range(1, store.read_last_seq() + 1)), (
            places,
            store.read_last_seq(),
        )
        assert mirror.state == held(store).state
        assert mirror.resyncs == 0


def number(places: list[str]) -> int:
    """Return the sequence number of the last position of the only project."""
    return int(places[-1].partition("@")[0]) if places else 0


@ROUTES
async def test_a_client_that_sleeps_catches_up_with_what_other_processes_did_too(
    tmp_path: Path, path: str
) -> None:
    async with served(tmp_path, [LISTS, DONE, DONE]) as it:
        store = (await it.project()).store
        mirror = Mirror()
        gone = await it.session()
        async with following(it, path, "0") as stream:
            await converged(stream, mirror, store)
            place = stream.place
        await it.prompt(await it.session())
        await it.http.delete(f"/session/{gone}")
        await elsewhere(tmp_path, it.work)
        async with following(it, path, place) as stream:
            await converged(stream, mirror, store)
        assert len(mirror.sessions) == 2
        assert mirror.resyncs == 0


async def elsewhere(tmp_path: Path, work: Path) -> None:
    """Say something in another process's store; make a session and delete it."""
    project = await open_project(
        make_startup(tmp_path / "home", work), SingleModel(ScriptedModel([DONE]))
    )
    try:
        client = LocalClient(project)
        session = await client.call(SESSION_CREATE, CreateSession())
        await client.call(PROMPT, Prompt(session_id=session.id, parts=[TextPartInput(text="go")]))
        await client.call(
            SESSION_DELETE,
            SessionId(session_id=(await client.call(SESSION_CREATE, CreateSession())).id),
        )
    finally:
        await project.close()


@ROUTES
async def test_a_client_that_sees_the_server_start_anew_goes_on_where_it_was(
    tmp_path: Path, path: str
) -> None:
    mirror = Mirror()
    async with served(tmp_path, Slowly([LISTS, DONE])) as it:
        session_id = await it.session()
        turn = asyncio.create_task(it.prompt(session_id))
        async with following(it, path, "0") as stream:
            for _ in range(12):
                mirror.apply(await stream.next())
            place = stream.place
        await it.server.stop()
        await asyncio.gather(turn, return_exceptions=True)
    await elsewhere(tmp_path, tmp_path / "work")
    async with served(tmp_path, [DONE]) as it, following(it, path, place) as stream:
        await stream.next()
        await it.prompt(session_id)
        await converged(stream, mirror, (await it.project()).store)
        assert mirror.resyncs == 0


async def test_a_project_opened_while_a_client_was_away_is_told_to_it_from_its_opening_on(
    tmp_path: Path,
) -> None:
    other = tmp_path / "other"
    await asyncio.to_thread(other.mkdir)
    async with served(tmp_path) as it:
        async with following(it, "/global/event") as stream:
            await stream.next()
            place = stream.place
        session = await it.post(f"/session?directory={other}")
        async with following(it, "/global/event", place) as stream:
            await stream.next()
            event = await stream.next()
            assert event["payload"]["type"] == "session.created"
            assert event["payload"]["properties"]["sessionID"] == session["id"]


@pytest.mark.slow
async def test_a_client_that_reads_nothing_is_dropped_and_nobody_else_notices(
    tmp_path: Path,
) -> None:
    count = 25_000
    async with served(tmp_path, [DONE]) as it:
        session_id = await it.session()
        store = (await it.project()).store
        _, slow_writer = await connected(it, "/event", receive=4096)
        quick, quick_writer = await connected(it, "/event")
        counting = asyncio.create_task(counted(quick))
        delta = Delta(
            session_id=session_id,
            message_id="msg_1",
            part_id="prt_1",
            field="text",
            delta="word " * 100,
        )
        most = 0
        for number_ in range(count):
            store.publish_live(PartDelta(properties=delta))
            if number_ % 200 == 0:
                await asyncio.sleep(0.001)
                most = max(most, waiting(it.server.hub))
        await wait_until(lambda: len(it.server.hub._subscribers) == 1)
        assert most <= SERVER_STREAM_EVENTS.value * 2
        await it.prompt(session_id)
        assert await asyncio.wait_for(counting, 60) == count + DONE.deltas
        mirror = Mirror()
        async with following(it, place="0") as stream:
            await converged(stream, mirror, store)
        quick_writer.close()
        slow_writer.close()


@pytest.mark.slow
async def test_a_client_that_takes_nothing_of_a_replay_is_given_up(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        it.server.hub.write_timeout = 0.1
        session_id = await it.session()
        store = (await it.project()).store
        large = replace(store.get_session(session_id), title="x" * 1_000_000)
        for _ in range(10):
            store.append(updated(large))
        _, writer = await connected(it, "/event?after=0", receive=4096)
        await wait_until(lambda: not it.server.hub._subscribers)
        await wait_until(lambda: not it.server._server.server_state.tasks)
        writer.close()


async def test_a_position_that_is_ahead_of_what_this_server_has_read_brings_nothing_twice(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as one, following(one) as waiting_, served(tmp_path) as two:
        await waiting_.next()
        async with following(two) as stream:
            await two.session()
            await stream.until(lambda event: event["type"] == "session.created")
            place = stream.place
        async with following(one, place=place) as stream:
            await waiting_.until(lambda event: event["type"] == "session.created")
            session_id = await one.session()
            assert [
                (await stream.next())["type"],
                (await stream.next())["properties"]["sessionID"],
            ] == [
                "server.connected",
                session_id,
            ]


def waiting(hub: Hub) -> int:
    """How many events wait for all subscribers together."""
    return sum(len(each._frames) for each in hub._subscribers)


async def counted(reader: asyncio.StreamReader) -> int:
    """Count deltas until a turn ends."""
    found = 0
    async for line in reader:
        found += b'"message.part.delta"' in line
        if b'"session.idle"' in line:
            break
    return found


async def test_what_comes_before_a_stream_is_first_read_comes_once(tmp_path: Path) -> None:
    async with served(tmp_path) as it, following(it) as other:
        hub, store = it.server.hub, (await it.project()).store
        await other.next()
        before = store.read_last_seq()
        subscriber = Subscriber(str(it.work), get_project_id(store))
        hub.add_subscriber(subscriber, {get_project_id(store): before})
        await it.session()
        await other.until(lambda event: event["type"] == "session.created")
        async with contextlib.aclosing(hub.stream_chunks(subscriber)) as chunks:
            text = (await anext(chunks)).decode()
            await it.session()
            while f"id: {store.read_last_seq()}\n" not in text:
                text += (await anext(chunks)).decode()
        hub.remove_subscriber(subscriber)
        assert re.findall(r"id: (\d+)", text) == [
            str(seq) for seq in range(before, store.read_last_seq() + 1)
        ]


@pytest.mark.slow
@ROUTES
async def test_who_comes_too_late_is_told_to_read_the_state_again(
    tmp_path: Path, path: str
) -> None:
    async with served(tmp_path, [DONE]) as it:
        session_id = await it.session()
        store = (await it.project()).store
        async with following(it, path) as stream:
            await stream.next()
            place = stream.place
        info = store.get_session(session_id)
        for _ in range((STORE_EVENTS.value + PRUNE_INTERVAL) // 500 + 1):
            store.append(*[updated(info)] * 500)
        mirror = Mirror()
        async with following(it, path, place) as stream:
            events = [await stream.next(), await stream.next()]
            resync = events[1].get("payload", events[1])
            assert resync["type"] == "server.resync"
            assert "no longer kept" in resync["properties"]["reason"]
            mirror.read_anew(store)
            await it.prompt(session_id)
            await converged(stream, mirror, store)
            assert number(stream.places) == store.read_last_seq()


@ROUTES
@pytest.mark.parametrize(
    "place",
    [
        "nonsense",
        "-1",
        "99",
        "9" * 30,
        "1@",
        "1@../../etc",
        "99@global",
        "1@no-such-project",
        "1@global,1@global",
        "\xff",
    ],
)
async def test_a_position_that_is_none_begins_with_a_resync(
    tmp_path: Path, path: str, place: str
) -> None:
    async with served(tmp_path) as it:
        await it.session()
        headers = [(b"last-event-id", place.encode("latin-1"))]
        async with it.http.stream("GET", path, headers=headers) as response:
            stream = Stream(response.aiter_lines(), response.headers)
            events = [await stream.next(), await stream.next()]
            assert [event.get("payload", event)["type"] for event in events] == [
                "server.connected",
                "server.resync",
            ]
            await it.session()
            assert (await stream.next()).get("payload", {}).get(
                "type", "session.created"
            ) == "session.created"
        folders = [path_.name for path_ in (tmp_path / "home" / "data" / "project").iterdir()]
        assert folders == ["global"]


@ROUTES
async def test_a_query_that_is_no_position_is_refused(tmp_path: Path, path: str) -> None:
    async with served(tmp_path) as it:
        refused = await it.http.get(path, params={"after": "nonsense"})
        assert refused.status_code == 400
        assert "after" in refused.json()["data"]["message"]


@ROUTES
async def test_a_store_that_fails_ends_the_streams_and_they_go_on_when_it_works_again(
    tmp_path: Path, path: str
) -> None:
    async with served(tmp_path, [DONE]) as it:
        session_id = await it.session()
        store = (await it.project()).store
        mirror = Mirror()
        with sqlite3.connect(store.path, isolation_level=None) as other:
            async with following(it, path, "0") as stream:
                await converged(stream, mirror, store)
                place = stream.place
                other.execute("UPDATE outbox SET last = last + 1")
                seq = other.execute(
                    "INSERT INTO event SELECT last, 'x', 'garbage' FROM outbox"
                ).lastrowid
                with pytest.raises(EOFError):
                    await stream.until(lambda _: False)
            other.execute("DELETE FROM event WHERE seq = ?", (seq,))
        other.close()
        async with following(it, path, place) as stream:
            await it.prompt(session_id)
            await converged(stream, mirror, store)


async def test_text_that_is_not_unicode_does_not_end_the_stream(tmp_path: Path) -> None:
    async with served(tmp_path) as it, following(it) as own, following(it, "/global/event") as all_:
        project = await it.project()
        project.publish_live(FileEdited(properties=FilePath(file="/p/\udcff")))
        session_id = await it.session()
        for stream in (own, all_):
            event = (await stream.until(lambda event: "session.created" in str(event)))[-1]
            assert event.get("payload", event)["properties"]["sessionID"] == session_id


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(scale_examples(3)))
async def test_clients_with_bad_connections_all_come_to_hold_what_the_store_holds(
    tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    async with served(tmp_path, Slowly([LISTS, DONE] * 10)) as it:
        store = (await it.project()).store
        over = asyncio.Event()
        clients = [
            asyncio.create_task(unsteady(it, path, random.Random(seed + n), over, store))
            for n, path in enumerate(["/event", "/event", "/global/event", "/global/event"])
        ]
        sessions = [await it.session() for _ in range(3)]
        for _ in range(3):
            await asyncio.gather(*(it.prompt(session) for session in sessions[:2]))
            messages = await it.get(f"/session/{sessions[0]}/message")
            await it.http.delete(
                f"/session/{sessions[0]}/message/{dice.choice(messages)['info']['id']}"
            )
            await it.http.delete(f"/session/{sessions.pop()}")
            sessions.append(await it.session())
        over.set()
        for mirror in await asyncio.gather(*clients):
            assert mirror.state == held(store).state
            assert mirror.resyncs == 0


async def unsteady(
    it: Served, path: str, dice: random.Random, over: asyncio.Event, store: Store
) -> Mirror:
    """Read events on a connection that breaks again and again;
    return the state when it is the store's.
    """
    mirror, place = Mirror(), "0"
    while True:
        async with following(it, path, place) as stream:
            for _ in range(dice.randrange(1, 30)):
                if over.is_set() and mirror.state == held(store).state:
                    return mirror
                try:
                    mirror.apply(await stream.next(1))
                except TimeoutError:
                    break
            place = stream.place or place
        await asyncio.sleep(dice.random() / 50)
