"""Reading beside the loop: pages, taken ids, databases that are opened only to read."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.schema.event import (
    PartInfo,
    PartUpdated,
    SessionCreated,
    SessionInfo,
    make_message_updated,
    make_session_created,
)
from codeloop.schema.message import NO_TOKENS, CacheTokens, Tokens
from codeloop.schema.part import TextPart
from codeloop.schema.wire import encode_json
from codeloop.store.conversation import Entry
from codeloop.store.database import MIGRATIONS, StoreError
from codeloop.store.queries import SessionFilter, make_like_pattern, open_queries
from codeloop.store.store import Store
from tests.store.old_database import old_database, put_message, put_part, put_session
from tests.store.states import session, text, user

SESSION = session("ses_1")


def filled(path: Path, times: list[int]) -> Store:
    """Return a store with a session of messages that were created at these times."""
    store = Store(path)
    store.append(make_session_created(SESSION))
    for number, at in enumerate(times):
        info = user(SESSION.id, f"msg_{number:03}", at=at)
        part = TextPart(
            id=f"prt_{number:03}", session_id=SESSION.id, message_id=info.id, text=str(number)
        )
        store.append(
            make_message_updated(info),
            PartUpdated(properties=PartInfo(session_id=SESSION.id, part=part, time=1)),
        )
    return store


@pytest.mark.parametrize("size", [1, 2, 3, 8, 100])
@pytest.mark.parametrize("times", [[], [5], [1, 2, 3, 4, 5], [7, 7, 7, 7], [9, 1, 5, 5, 2, 9, 1]])
def test_pages_together_are_the_conversation(tmp_path: Path, times: list[int], size: int) -> None:
    store = filled(tmp_path / "a.db", times)
    entries, before, has_more = [], None, True
    while has_more:
        page, has_more = store.queries.read_message_page(SESSION.id, size, before)
        assert len(page) == size or not has_more
        entries = page + entries
        before = (page[0].info.time.created, page[0].info.id) if page else None
    assert tuple(entries) == store.read_conversation(SESSION.id).entries
    store.close()


def test_any_id_that_is_in_use_counts(tmp_path: Path) -> None:
    store = filled(tmp_path / "a.db", [1])
    taken, taken_part = store.queries.has_any_id, store.queries.has_any_part
    assert not taken(["ses_2"], ["msg_2"])
    assert taken(["ses_1"], [])
    assert taken([], ["msg_9", "msg_000"])
    assert taken_part(["prt_9", "prt_000"])
    assert not taken_part(["prt_9"])
    assert not taken_part([])
    store.close()


def test_ids_are_looked_for_without_reading_all_parts(tmp_path: Path) -> None:
    store, steps = filled(tmp_path / "a.db", list(range(500))), list[int]()
    store.append(make_session_created(session("ses_2")))
    store._db._connection.set_progress_handler(lambda: steps.append(1), 50)
    assert not store.queries.has_any_id(["ses_9"], ["msg_9"])
    assert not store.queries.has_any_part([])
    assert len(steps) < 10, "of 50 steps of SQLite each"
    store.close()


def test_a_database_opened_to_read_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    filled(path, [1]).close()
    before = path.read_bytes()
    queries = open_queries(path)
    assert [each.id for each in queries.find_sessions(SessionFilter())] == [SESSION.id]
    queries.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_a_database_of_an_earlier_version_is_read_and_left_as_it_is(
    tmp_path: Path, version: int
) -> None:
    path, message = tmp_path / "a.db", user(SESSION.id)
    part = text(message, "an apple")
    with old_database(path, version) as old:
        put_session(old, SESSION)
        put_message(old, message)
        put_part(old, part)
        before = list(old.iterdump())
        queries = open_queries(path)
        assert queries.find_sessions(SessionFilter(only_roots=True)) == [SESSION]
        assert [each.id for each in queries.list_session_overviews(10)] == [SESSION.id]
        assert queries.list_busy_sessions() == []
        assert queries.measure_sessions([SESSION.id]) == len(encode_json(part))
        assert queries.read_message_page(SESSION.id, None, None) == (
            [Entry(message, (part,))],
            False,
        )
        assert list(queries.search_parts(SESSION.id, "apple")) == [(message, part)]
        queries.close()
        assert list(old.iterdump()) == before
        assert old.execute("PRAGMA user_version").fetchone() == (version,)


def test_what_another_process_writes_is_read_without_waiting(tmp_path: Path) -> None:
    store = filled(tmp_path / "a.db", [1])
    queries = open_queries(store.path)
    store.append(
        SessionCreated(properties=SessionInfo(session_id="ses_2", info=session("ses_2", at=2)))
    )
    assert [each.id for each in queries.find_sessions(SessionFilter())] == ["ses_2", "ses_1"]
    queries.close()
    store.close()


def test_a_missing_or_foreign_database_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        open_queries(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty.db").touch()
    with pytest.raises(StoreError, match="version 0"):
        open_queries(tmp_path / "empty.db")


@given(st.text(max_size=6), st.text(max_size=3), st.text(max_size=3))
def test_the_pattern_finds_at_least_what_holds_the_text(text: str, before: str, after: str) -> None:
    import sqlite3

    whole = (before + text + after).replace("\0", "")
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in whole):
        return
    db = sqlite3.connect(":memory:")
    assert db.execute(
        "SELECT ? LIKE ? ESCAPE '!'", (whole, make_like_pattern(text))
    ).fetchone() == (1,)
    db.close()


def test_token_counts_are_added_and_taken_off_but_never_below_nothing() -> None:
    some = Tokens(input=3, output=2, reasoning=1, cache=CacheTokens(read=5, write=4))
    assert some.plus(some).plus(some, -1) == some
    assert NO_TOKENS.plus(some, -1) == NO_TOKENS
