"""The event streams show what happens, in order, to those who asked for it."""

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest

from codeloop.app.models.open_models import SingleModel
from codeloop.app.project import open_project
from codeloop.client.local import LocalClient
from codeloop.model.testing.replay import ScriptedModel
from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from codeloop.schema.api.session_inputs import PROMPT, Prompt, TextPartInput
from codeloop.schema.api.session_requests import SESSION_CREATE, CreateSession
from codeloop.schema.bounds.server import (
    SERVER_HEARTBEAT,
    SERVER_STREAM_BYTES,
    SERVER_STREAM_EVENTS,
    SERVER_STREAM_PACE,
    SERVER_STREAM_WRITE,
    SERVER_STREAMS,
)
from codeloop.schema.event import StoredEvent
from codeloop.schema.limits import STORE_EVENTS
from codeloop.schema.live_events import LiveEvent
from codeloop.server.events.hub import Hub
from tests.server.support.serving import served
from tests.server.support.streaming import Mirror, connected, following, held, types
from tests.support.scripted_project import make_startup, wait_until

LISTS = ScriptedAnswer(text="I look.", calls=(ScriptedCall("list", {"path": "."}, "call_1"),))
DONE = ScriptedAnswer(text="That is all there is.")


def sizes(hub: Hub) -> tuple[int, int]:
    """How many subscribers and followed stores there are."""
    return len(hub._subscribers), len(hub._sources)


async def test_a_stream_has_the_headers_of_the_contract_and_begins_with_connected(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as it:
        for path in ("/event", "/global/event"):
            async with following(it, path) as stream:
                assert stream.headers["content-type"] == "text/event-stream"
                assert stream.headers["cache-control"] == "no-cache, no-transform"
                assert stream.headers["x-accel-buffering"] == "no"
                first = await stream.next()
        assert set(first) == {"payload"}
        assert first["payload"]["type"] == "server.connected"
        assert first["payload"]["properties"] == {}
        assert first["payload"]["id"].startswith("evt_")


async def test_a_turn_is_shown_in_order_on_both_streams(tmp_path: Path) -> None:
    async with (
        served(tmp_path, [LISTS, DONE]) as it,
        following(it) as own,
        following(it, "/global/event") as all_,
    ):
        session_id = await it.session()
        await it.prompt(session_id)
        project = await it.project()
        seen = await own.turn()
        wrapped = await all_.turn()
        assert {frozenset(event) for event in seen} == {frozenset({"id", "type", "properties"})}
        assert [event["payload"] for event in wrapped[1:]] == seen[1:]
        assert {event["directory"] for event in wrapped[1:]} == {str(it.work)}
        assert {event["project"] for event in wrapped[1:]} == {
            project.settings.project_root.project_id
        }
        shown = types(seen)
        for earlier, later in (
            ("server.connected", "session.created"),
            ("session.created", "message.updated"),
            ("message.part.updated", "message.part.delta"),
        ):
            assert shown.index(earlier) < shown.index(later)
        assert "sync" not in shown
        mirror = Mirror()
        for event in seen:
            mirror.apply(event)
        assert mirror.state == held(project.store).state
        assert [int(place) for place in own.places] == list(
            range(project.store.read_last_seq() + 1)
        )


async def test_directories_of_one_repository_do_not_mix(tmp_path: Path) -> None:
    def prepared() -> Path:
        other = tmp_path / "work" / "inner"
        other.mkdir(parents=True)
        author = ("-c", "user.name=t", "-c", "user.email=t@t")
        for line in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-mx"]):
            subprocess.run(["git", *line], cwd=tmp_path / "work", check=True)
        return other

    other = await asyncio.to_thread(prepared)
    async with (
        served(tmp_path, [DONE] * 4) as it,
        following(it) as outer,
        following(it, directory=str(other)) as inner,
        following(it, "/global/event") as all_,
    ):
        mine = await it.session()
        theirs = (await it.post(f"/session?directory={other}"))["id"]
        await asyncio.gather(it.prompt(mine), it.prompt(theirs))
        stores = {project.store for project in it.app.projects}
        assert len(stores) == 1
        assert named(await outer.turn()) == {mine}
        assert named(await inner.turn()) == {theirs}
        seen = [*await all_.turn(), *await all_.turn()]
        assert {
            (event["directory"], session)
            for event in seen[1:]
            for session in named([event["payload"]])
        } == {
            (str(it.work), mine),
            (str(other), theirs),
        }
        async with following(it, place="0") as again:
            assert named(await again.until(is_completed)) == {mine}


def is_completed(event: Any) -> bool:
    info = event["properties"].get("info", {})
    return event["type"] == "message.updated" and "completed" in info["time"]


def named(events: list[Any]) -> set[str]:
    """Return the sessions that events are of."""
    return {
        event["properties"]["sessionID"] for event in events if "sessionID" in event["properties"]
    }


async def test_projects_opened_later_come_on_the_stream_of_all_directories(tmp_path: Path) -> None:
    other = tmp_path / "other"
    await asyncio.to_thread(other.mkdir)
    async with served(tmp_path) as it, following(it, "/global/event") as stream:
        assert it.app.projects == ()
        await it.post(f"/session?directory={other}")
        seen = await stream.until(lambda event: event["payload"]["type"] == "session.created")
        assert seen[-1]["directory"] == str(other)


async def test_what_another_process_stores_reaches_the_stream(tmp_path: Path) -> None:
    async with served(tmp_path) as it, following(it) as stream:
        project = await open_project(
            make_startup(tmp_path / "home", it.work), SingleModel(ScriptedModel([DONE]))
        )
        try:
            client = LocalClient(project)
            session = await client.call(SESSION_CREATE, CreateSession())
            await client.call(
                PROMPT, Prompt(session_id=session.id, parts=[TextPartInput(text="go")])
            )
            seen = await stream.until(is_completed)
            assert named(seen) == {session.id}
        finally:
            await project.close()


async def test_a_heartbeat_shows_that_the_stream_is_open(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        it.server.hub.heartbeat_seconds = 0.05
        async with following(it) as own, following(it, "/global/event") as all_:
            for event in (
                (await own.until(is_heartbeat))[-1],
                (await all_.until(is_heartbeat))[-1]["payload"],
            ):
                assert event["properties"] == {}
            assert len(own.places) == 1


def is_heartbeat(event: Any) -> bool:
    return event.get("payload", event)["type"] == "server.heartbeat"


async def test_a_client_that_has_left_is_forgotten_with_what_it_followed(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        await it.session()
        async with following(it) as stream, following(it, "/global/event"):
            await stream.next()
            assert sizes(it.server.hub) == (2, 1)
            assert it.server.hub.is_watched(tmp_path)
        await wait_until(lambda: sizes(it.server.hub) == (0, 0))
        assert not it.server.hub.is_watched(tmp_path)
        async with following(it) as stream:
            await stream.next()
            assert it.server.hub.is_watched(it.work)
            assert not it.server.hub.is_watched(tmp_path)


async def test_a_project_that_is_opened_anew_tells_its_readers_and_goes_on(tmp_path: Path) -> None:
    async with (
        served(tmp_path, [DONE]) as it,
        following(it) as own,
        following(it, "/global/event") as all_,
    ):
        await it.session()
        await it.post("/instance/dispose")
        assert (await own.until(is_disposed))[-1]["properties"] == {"directory": str(it.work)}
        await all_.until(is_disposed)
        await it.prompt(await it.session())
        assert types(await own.turn())[0] == "session.created"
        await it.post(f"/session?directory={tmp_path}")
        await it.post("/global/dispose")
        assert types(await own.until(lambda event: event["type"] == "global.disposed"))
        assert len(it.app.projects) == 0
        last = await it.session()
        rest = types(await all_.until(lambda event: last in str(event)))
        assert rest.count("global.disposed") == 1


def is_disposed(event: Any) -> bool:
    return event.get("payload", event)["type"] == "server.instance.disposed"


async def test_a_server_that_stops_ends_its_streams(tmp_path: Path) -> None:
    async with served(tmp_path) as it, following(it) as own, following(it, "/global/event") as all_:
        await own.next()
        await all_.next()
        ended = [asyncio.create_task(stream.until(lambda _: False)) for stream in (own, all_)]
        await asyncio.wait_for(it.server.stop(), 60)
        for task in ended:
            assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], EOFError)


@pytest.mark.slow
async def test_no_more_than_so_many_streams_are_open(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        streams = [await connected(it, "/global/event") for _ in range(SERVER_STREAMS.value)]
        refused = await it.http.get("/event")
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) > 0
        assert refused.json()["data"]["message"]
        session_id = await it.session()
        for reader, writer in streams:
            async with asyncio.timeout(60):
                assert (
                    session_id.encode()
                    in await reader.readuntil(b"session.created") + await reader.readline()
                )
            writer.close()
        await wait_until(lambda: sizes(it.server.hub) == (0, 0) and not it.server.hub._tasks)


async def test_a_head_request_is_answered_without_a_stream(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        answer = await it.http.head("/event")
        assert answer.headers["content-type"] == "text/event-stream"
        assert sizes(it.server.hub) == (0, 0)


async def test_a_directory_that_can_not_be_used_is_refused_before_the_stream_begins(
    tmp_path: Path,
) -> None:
    def locked() -> Path:
        file = tmp_path / "file"
        file.write_text("x")
        return file

    async with served(tmp_path) as it:
        for name in (str(await asyncio.to_thread(locked)), "a\0b", "a" * 5000):
            answer = await it.http.get("/event", params={"directory": name})
            assert answer.status_code == 400, name[:20]
            assert answer.json()["data"]["message"]


def test_the_page_names_every_event_and_the_bounds() -> None:
    page = (Path(__file__).parents[3] / "docs" / "events.md").read_text(encoding="utf-8")
    stored, live = page.partition("The others are only live")[::2]
    for part, union in ((stored, StoredEvent), (live, LiveEvent)):
        rows = re.findall(
            r"^\| (`[a-z]+\..*?) \|", part.partition("## The events")[2] or part, re.MULTILINE
        )
        shown = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
        assert shown == {each.__struct_config__.tag for each in get_args(union)}
    for shown in (
        f"newest {STORE_EVENTS.value:,} stored",
        f"| {SERVER_STREAMS.value}; one more",
        f"| {SERVER_STREAM_EVENTS.value:,} events or {SERVER_STREAM_BYTES.value // 2**20} MB",
        f"after {SERVER_STREAM_WRITE.seconds:.0f} s",
        f"every {SERVER_HEARTBEAT.seconds:.0f} s",
        f"within {SERVER_STREAM_PACE.value} ms",
    ):
        assert shown in page
