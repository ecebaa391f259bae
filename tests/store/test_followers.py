"""Followers: every stored event once and in order, whoever stored it;
live ones in their place between them.
"""

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeloop.schema.errors import GapError
from codeloop.schema.event import (
    Event,
    PartRemoved,
    PartUpdated,
    SessionCreated,
    SessionUpdated,
    StampedEvent,
    get_session_id,
)
from codeloop.schema.limits import (
    STORE_EVENTS,
    STORE_POLL,
    STORE_POLL_IDLE,
    STORE_POLL_REST,
    STORE_QUEUE_EVENTS,
)
from codeloop.schema.live_events import Delta, PartDelta
from codeloop.schema.wire import replace
from codeloop.store.outbox import PRUNE_INTERVAL
from codeloop.store.store import Store
from tests.store.states import created, deleted, gone, put, said, session, text, updated, user
from tests.support.examples import scale_examples

ROOT = Path(__file__).resolve().parents[2]
WRITER = """
import sys, time
from pathlib import Path
from codeloop.store.store import Store
from tests.store.states import session, updated
store = Store(Path(sys.argv[1]))
for number in range(int(sys.argv[2])):
    store.append(updated(session(title=str(time.time_ns()))))
    time.sleep(float(sys.argv[3]))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "codeloop.db"


async def take(
    stream: AsyncIterator[StampedEvent], count: int, deadline: float = 60
) -> list[StampedEvent]:
    return [await asyncio.wait_for(anext(stream), deadline) for _ in range(count)]


async def until(stream: AsyncIterator[StampedEvent], seq: int) -> list[StampedEvent]:
    """Return what comes up to the stored event `seq`."""
    found: list[StampedEvent] = []
    while not found or found[-1].seq != seq:
        found += await take(stream, 1)
    return found


def delta(words: str) -> PartDelta:
    of = Delta(session_id="ses_1", message_id="msg_1", part_id="prt_1", field="text", delta=words)
    return PartDelta(properties=of)


def titles(events: list[StampedEvent]) -> list[str]:
    kinds = (SessionCreated, SessionUpdated)
    return [e.event.properties.info.title for e in events if isinstance(e.event, kinds)]


async def test_a_follower_hears_what_is_stored_after_it_was_made_even_before_its_first_read(
    path: Path,
) -> None:
    store = Store(path)
    store.append(updated(session(title="old")))
    stream = store.follow()
    seq = store.append(updated(session(title="new")))
    assert titles(await until(stream, seq)) == ["new"]
    store.close()


async def test_replay_then_live_without_a_gap(path: Path) -> None:
    store = Store(path)
    for number in range(5):
        store.append(updated(session(title=str(number))))
    stream = store.follow(2)
    assert titles(await take(stream, 2)) == ["2", "3"]
    store.append(updated(session(title="5")))
    store.publish_live(delta("live"))
    seq = store.append(updated(session(title="6")))
    rest = await until(stream, seq)
    assert [(s.seq, type(s.event).__name__) for s in rest] == [
        (5, "SessionCreated"),
        (6, "SessionUpdated"),
        (None, "PartDelta"),
        (7, "SessionUpdated"),
    ]
    store.close()


async def test_a_whispered_event_is_never_stored_and_not_seen_by_later_followers(
    path: Path,
) -> None:
    store = Store(path)
    first = store.follow()
    waiting = asyncio.ensure_future(anext(first))
    await asyncio.sleep(0)
    store.publish_live(delta("a"))
    assert (await waiting).seq is None
    seq = store.append(updated(session()))
    assert [stamped.seq for stamped in await until(store.follow(0), seq)] == [1]
    store.close()


async def test_a_live_event_keeps_its_place_when_another_store_writes_at_the_same_time(
    path: Path,
) -> None:
    """A delta told after the whole text it belongs to would be shown twice."""
    here, elsewhere = Store(path), Store(path)
    stream = here.follow()
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    one = session()
    message = user(one.id)
    here.append(created(one), said(message), put(text(message, "", "prt_1")))
    await waiting
    here.publish_live(delta("words"))
    here.append(put(text(message, "words", "prt_1")))
    elsewhere.append(updated(session(title="elsewhere")))
    await asyncio.sleep(0.1)
    seen = await until(stream, 5)
    kinds = [type(stamped.event) for stamped in seen]
    assert kinds.index(PartDelta) < max(n for n, kind in enumerate(kinds) if kind is PartUpdated)
    assert [stamped.seq for stamped in seen if stamped.seq] == [2, 3, 4, 5]
    here.close()
    elsewhere.close()


async def test_a_slow_follower_loses_only_live_events(path: Path) -> None:
    store = Store(path)
    stream = store.follow()
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    store.append(updated(session(title="0")))
    await waiting
    for _ in range(STORE_QUEUE_EVENTS.value + 10):
        store.publish_live(delta("x"))
    for number in range(1, 4):
        store.append(updated(session(title=str(number))))
    seen = await until(stream, 4)
    assert titles(seen) == ["1", "2", "3"]
    assert len(seen) <= STORE_QUEUE_EVENTS.value + 3
    store.close()


@pytest.mark.slow
async def test_who_asks_for_events_that_are_no_longer_kept_is_told_so(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(path)
    one = session()
    for start in range(0, STORE_EVENTS.value + PRUNE_INTERVAL, 500):
        store.append(*(updated(one) for _ in range(500)))
        assert store.read_last_seq() == start + 500
    with pytest.raises(GapError, match="Read the state again"):
        await take(store.follow(0), 1)
    kept = store.read_last_seq() - 5
    assert [s.seq for s in await take(store.follow(kept), 5)] == list(range(kept + 1, kept + 6))
    store.close()


async def test_a_state_is_stored_once_and_each_change_of_it_is_followed(path: Path) -> None:
    store = Store(path)
    one = session()
    message = user(one.id)
    part = text(message, random.Random(1).randbytes(250_000).hex())
    later = replace(one, title="later")
    store.append(created(one), said(message), put(part), updated(later))
    store.close()
    assert path.stat().st_size < 500_000 + 250_000
    store = Store(path)
    events = await take(store.follow(0), 4)
    assert [each.event for each in events] == [
        replace(made, id=each.event.id)
        for each, made in zip(
            events, (created(later), said(message), put(part), updated(later)), strict=True
        )
    ]
    # Who comes later gets the part as it is by then, once for each change.
    texts = [replace(part, text=text) for text in ("a", "b", "c")]
    last = store.append(*map(put, texts))
    events = await take(store.follow(0), last)
    assert [each.seq for each in events] == list(range(1, last + 1))
    of_part = [each.event for each in events if isinstance(each.event, PartUpdated)]
    assert [each.properties.part for each in of_part] == [texts[-1]] * 4
    last = store.append(gone(part))
    assert isinstance((await take(store.follow(last - 1), 1))[0].event, PartRemoved)
    store.close()


async def test_an_event_has_the_same_id_whenever_it_is_read(path: Path) -> None:
    store, other = Store(path), Store(path)
    stream, foreign = store.follow(0), other.follow(0)
    waiting = [asyncio.ensure_future(take(each, 3)) for each in (stream, foreign)]
    await asyncio.sleep(0)
    one = session()
    store.append(created(one), updated(one), deleted(session()))
    live, read = await asyncio.gather(*waiting)
    ids = [each.event.id for each in live]
    assert ids == [each.event.id for each in read] == sorted(set(ids))
    store.close()
    other.close()


async def test_a_deletion_is_no_gap(path: Path) -> None:
    store = Store(path)
    one, other = session(), session()
    store.append(created(one), created(other))
    store.append(deleted(one))
    seq = store.append(updated(other))
    assert [s.seq for s in await until(store.follow(0), seq)] == [2, 3, 4]
    store.close()


async def test_a_second_process_is_heard(
    path: Path, record_property: Callable[[str, object], None]
) -> None:
    store = Store(path)
    stream = store.follow()
    command = [sys.executable, "-c", WRITER, str(path), "5", "0.03"]
    with subprocess.Popen(command, cwd=ROOT) as process:
        waits: list[float] = []
        for _ in range(5):
            stamped = (await take(stream, 1))[0]
            waits.append((time.time_ns() - int(titles([stamped])[0])) / 1e6)
        assert process.wait() == 0
    record_property("slowest_ms", max(waits))
    assert sorted(waits)[2] < 20_000, waits
    store.close()


async def test_a_follower_of_a_tree_reads_of_other_processes_only_what_concerns_it(
    path: Path,
) -> None:
    here, elsewhere = Store(path), Store(path)
    own, other = session(), session()
    child = session(parent=own.id)
    here.append(created(own))
    stream = here.follow(root=own.id)
    elsewhere.append(created(other), created(child), updated(other), updated(child))
    here.append(updated(own))
    grandchild = session(parent=child.id)
    elsewhere.append(updated(other), created(grandchild))
    seen = await take(stream, 4)
    assert [get_session_id(stamped.event) for stamped in seen] == [
        child.id,
        child.id,
        own.id,
        grandchild.id,
    ]
    here.append(updated(other))  # of this process all come: a follower is woken by them anyway
    assert get_session_id((await take(stream, 1))[0].event) == other.id
    here.close()
    elsewhere.close()


async def test_a_follower_that_finds_nothing_polls_ever_less_often(path: Path) -> None:
    store = Store(path)
    waiting = asyncio.ensure_future(anext(store.follow()))
    await asyncio.sleep(0)
    polls, seconds = store._followers, list[float]()
    for count in (0, 250, 500):
        polls._empty_polls = count
        seconds.append(polls._get_poll_seconds())
    assert seconds == [STORE_POLL.seconds, STORE_POLL_IDLE.seconds, STORE_POLL_REST.seconds]
    store.append(created(session()))
    await asyncio.wait_for(waiting, 60)
    assert polls._get_poll_seconds() == STORE_POLL.seconds
    store.close()


async def test_events_of_others_do_not_keep_a_follower_of_a_tree_polling_fast(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeloop.store.followers.FAST_POLL_COUNT", 3)
    here, elsewhere = Store(path), Store(path)
    own, other = session(), session()
    here.append(created(own), created(other))
    pauses: list[float] = []
    polls = here._followers
    measure = polls._get_poll_seconds
    monkeypatch.setattr(polls, "_get_poll_seconds", lambda: pauses.append(measure()) or pauses[-1])
    waiting = asyncio.ensure_future(anext(here.follow(root=own.id)))
    while len(pauses) < 5:
        elsewhere.append(updated(other))
        await asyncio.sleep(0.01)
    assert pauses[-1] == STORE_POLL_IDLE.seconds
    elsewhere.append(updated(own))
    await asyncio.wait_for(waiting, 60)
    assert measure() < STORE_POLL_IDLE.seconds
    here.close()
    elsewhere.close()


async def test_a_closed_store_leaves_no_timer_that_fails(path: Path) -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    store = Store(path)
    stream = store.follow()
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    store.close()
    await asyncio.sleep(0.1)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert failures == []


class Watcher:
    """A follower that reads on when it is told to, and remembers what it saw."""

    def __init__(self, store: Store, after: int | None, only: str | None) -> None:
        self.only = only
        self.first = store.read_last_seq() if after is None else after
        self.seen: list[int] = []
        self._stream = store.follow(after, session=only)
        self._next: asyncio.Task[StampedEvent] | None = None

    async def read(self, count: int) -> None:
        for _ in range(count):
            if self._next is None:
                self._next = asyncio.ensure_future(anext(self._stream))
            done, _ = await asyncio.wait([self._next], timeout=0)
            if not done:
                await asyncio.sleep(0)
            if not self._next.done():
                return
            self.seen.append(self._next.result().seq or 0)
            self._next = None

    async def finish(self, expected: int) -> None:
        end = asyncio.get_running_loop().time() + 60
        while (
            len([seq for seq in self.seen if seq]) < expected
            and asyncio.get_running_loop().time() < end
        ):
            await self.read(50)
            await asyncio.sleep(0.001)
        await self.read(50)
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 1), st.integers(1, 3)),
        st.tuples(st.just("follow"), st.integers(0, 3), st.integers(0, 5)),
        st.tuples(st.just("read"), st.integers(0, 5), st.integers(1, 4)),
        st.tuples(st.just("publish_live"), st.integers(0, 1), st.just(0)),
    ),
    max_size=30,
)


@pytest.mark.slow
@settings(max_examples=scale_examples(40))
@given(actions=ACTIONS)
async def test_every_follower_sees_every_stored_event_once_and_in_order(
    actions: list[tuple[str, int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("follow") / "codeloop.db"
    stores = (Store(path), Store(path))
    sessions = (session(), session())
    stored: list[Event] = []
    watchers: list[Watcher] = []
    for what, who, count in actions:
        match what:
            case "append":
                events = [updated(sessions[(who + number) % 2]) for number in range(count)]
                stores[who].append(*events)
                stored += events
            case "follow":
                after = None if count == 5 else min(count, len(stored))
                only = sessions[0].id if who > 1 else None
                watchers.append(Watcher(stores[who % 2], after, only))
            case "publish_live":
                stores[who].publish_live(delta("x"))
            case _:
                if watchers:
                    await watchers[who % len(watchers)].read(count)
    for watcher in watchers:
        expected = [
            seq
            for seq, event in enumerate(stored, 1)
            if seq > watcher.first and watcher.only in {None, get_session_id(event)}
        ]
        await watcher.finish(len(expected))
        assert [seq for seq in watcher.seen if seq] == expected
    for store in stores:
        store.close()
