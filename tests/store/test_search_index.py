"""The index of what was said: it finds what a comparison of all texts finds, whatever happens to
the database and to the index between two searches.
"""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeloop.schema.event import (
    MessageGone,
    MessageRemoved,
    PartInfo,
    PartUpdated,
    make_message_updated,
    make_session_created,
    make_session_deleted,
)
from codeloop.schema.part import TextPart
from codeloop.store.database import StoreError
from codeloop.store.search_index import SearchIndex
from codeloop.store.store import Store
from tests.store.states import session, user

WORDS = ("apple", "Äpfel", "ap", "a", "no such text", 'say "ap')


def say(store: Store, number: int, text: str, session_number: int = 0) -> None:
    """Store a prompt with one text; with the same number again: in the place of the first."""
    session_id = f"ses_{session_number}"
    if store.find_session(session_id) is None:
        store.append(make_session_created(session(session_id)))
    info = user(session_id, f"msg_{number:03}", at=number)
    part = TextPart(id=f"prt_{number:03}", session_id=session_id, message_id=info.id, text=text)
    store.append(
        make_message_updated(info),
        PartUpdated(properties=PartInfo(session_id=session_id, part=part, time=1)),
    )


def remove(store: Store, number: int) -> None:
    for each in store.list_sessions():
        gone = MessageGone(session_id=each.id, message_id=f"msg_{number:03}")
        store.append(MessageRemoved(properties=gone))


def compact(store: Store) -> None:
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("VACUUM")


def find(store: Store, text: str) -> set[str]:
    with closing(SearchIndex(store.path)) as index:
        return {found.part.id for found in index.find_texts(text, ())}


def compare_all(store: Store, text: str) -> set[str]:
    return {
        part.id
        for each in store.list_sessions()
        for entry in store.read_conversation(each.id).entries
        for part in entry.parts
        if isinstance(part, TextPart) and text.casefold() in part.text.casefold()
    }


STEPS = st.one_of(
    st.tuples(st.just("say"), st.integers(0, 9), st.sampled_from(WORDS)),
    st.tuples(st.just("remove"), st.integers(0, 9), st.just("")),
    st.tuples(st.just("delete"), st.integers(0, 2), st.just("")),
    st.tuples(st.just("compact"), st.just(0), st.just("")),
    st.tuples(st.just("search"), st.just(0), st.sampled_from(WORDS)),
)


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEPS, max_size=30))
def test_the_index_finds_what_a_comparison_of_all_texts_finds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, str]]
) -> None:
    store = Store(tmp_path_factory.mktemp("index") / "a.db")
    for kind, number, text in [*steps, *(("search", 0, word) for word in WORDS)]:
        match kind:
            case "say":
                say(store, number, f"I {text} {number}", number % 3)
            case "remove":
                remove(store, number)
            case "delete" if store.find_session(f"ses_{number}"):
                store.append(make_session_deleted(session(f"ses_{number}")))
            case "compact":
                compact(store)
            case _:
                assert find(store, text) == compare_all(store, text)
    store.close()


def test_a_text_that_grows_in_its_place_is_found_with_its_end(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.db")
    say(store, 1, "the beginning")
    assert find(store, "beginning") == {"prt_001"}
    say(store, 1, "the beginning and the end")
    assert find(store, "the end") == {"prt_001"}
    store.close()


@pytest.mark.parametrize(
    "contents", [b"no database at all" * 100, b"SQLite format 3\0" + bytes(84), b""]
)
def test_a_damaged_index_is_made_anew(tmp_path: Path, contents: bytes) -> None:
    store = Store(tmp_path / "a.db")
    say(store, 1, "an apple")
    index = tmp_path / "a.db.search"
    index.write_bytes(contents)
    assert find(store, "apple") == {"prt_001"}
    assert index.read_bytes().startswith(b"SQLite format 3\0")
    store.close()


def test_an_index_of_another_version_is_made_anew(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.db")
    say(store, 1, "an apple")
    with closing(sqlite3.connect(tmp_path / "a.db.search")) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert find(store, "apple") == {"prt_001"}
    store.close()


def test_without_a_place_for_its_file_the_index_is_made_in_memory(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.db")
    say(store, 1, "an apple")
    (tmp_path / "a.db.search").mkdir()
    assert find(store, "apple") == {"prt_001"}
    store.close()


def test_the_index_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.db")
    say(store, 1, "an apple")
    find(store, "apple")
    assert (tmp_path / "a.db.search").stat().st_mode & 0o777 == 0o600
    store.close()


def test_nothing_is_left_of_a_deleted_session(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.db")
    say(store, 1, "an apple")
    find(store, "apple")
    store.append(make_session_deleted(session("ses_0")))
    store.close()
    assert not (tmp_path / "a.db.search").exists()


def test_after_a_backup_was_put_back_all_is_found_that_is_there(tmp_path: Path) -> None:
    path, backup = tmp_path / "a.db", tmp_path / "backup.db"
    store = Store(path)
    say(store, 1, "an apple")
    store.close()
    shutil.copy(path, backup)
    store = Store(path)
    for number in range(2, 5):
        say(store, number, "a pear")
    assert find(store, "pear") == {"prt_002", "prt_003", "prt_004"}
    store.close()
    shutil.copy(backup, path)
    store = Store(path)
    say(store, 9, "a plum")
    assert find(store, "plum") == {"prt_009"}
    assert find(store, "apple") == {"prt_001"}
    assert find(store, "pear") == set()
    store.close()


def test_a_sqlite_that_is_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "a.db")
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 33, 0))
    with pytest.raises(StoreError, match=r"needs SQLite 3\.34.* newer Python"):
        find(store, "apple")
    store.close()
