"""The file under the store: private, migrated whole or not at all,
and clear about what is wrong with it.
"""

import os
import random
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import pytest

from codeloop.kit.small_files import lock
from codeloop.schema.errors import GapError
from codeloop.schema.limits import STORE_BUSY_TIME
from codeloop.schema.wire import replace
from codeloop.store import database
from codeloop.store.conversation import Entry
from codeloop.store.database import MIGRATIONS, StoreError, migrate, open_database, transaction
from codeloop.store.store import Store
from tests.store.old_database import (
    old_database,
    put_event,
    put_message,
    put_part,
    put_request,
    put_session,
)
from tests.store.states import (
    created,
    deleted,
    put,
    question,
    said,
    session,
    text,
    updated,
    user,
)
from tests.support.examples import scale_examples

ROOT = Path(__file__).resolve().parents[2]
WRITER = """
import sys
from pathlib import Path
from codeloop.store.store import Store
from tests.store.states import session, updated
store = Store(Path(sys.argv[1]))
number = 0
while True:
    number += 1
    store.append(*(updated(session(title=f"{number}.{part}")) for part in range(3)))
    print(number, flush=True)
"""
FILLER = """
import os, sys
from pathlib import Path
from codeloop.store.database import StoreError
from codeloop.store.store import Store
from tests.store.states import session, updated
if len(sys.argv) > 3:
    os.setuid(int(sys.argv[3]))
try:
    store = Store(Path(sys.argv[1]))
    for number in range(int(sys.argv[2])):
        store.append(updated(session(title="x" * 10_000)))
        print(store.read_last_seq(), flush=True)
except StoreError as error:
    print(error)
    sys.exit(7)
"""
OPENER = """
import sys
from pathlib import Path
from codeloop.store.store import Store
from tests.store.states import session, updated
store = Store(Path(sys.argv[1]))
for _ in range(20):
    store.append(updated(session()))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "codeloop.db"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def is_sound(path: Path) -> bool:
    with sqlite3.connect(path) as db:
        return db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def script(code: str, *args: object) -> list[str]:
    return [sys.executable, "-c", code, *map(str, args)]


def test_files_and_folder_are_private_to_their_owner(path: Path) -> None:
    old = os.umask(0)
    try:
        store = Store(path)
        store.append(created(session()))
        assert mode(path.parent) == 0o700
        files = sorted(path.parent.iterdir())
        assert [file.name for file in files] == [
            "codeloop.db",
            "codeloop.db-shm",
            "codeloop.db-wal",
        ]
        assert {mode(file) for file in files} == {0o600}
        store.close()
    finally:
        os.umask(old)


def test_a_migration_keeps_the_data_and_makes_a_private_backup(path: Path) -> None:
    one = session()
    message = user(one.id)
    part = text(message, "kept")
    with old_database(path, 1) as old:
        put_session(old, one)
        put_message(old, message)
        put_part(old, part)
    new = Store(path)
    assert new.read_conversation(one.id).entries == (Entry(message, (part,)),)
    new.append(put(replace(part, text="changed")))
    (entry,) = Store(path).read_conversation(one.id).entries
    assert entry.parts == (replace(part, text="changed"),)
    backup = path.with_name("codeloop.db.v1.bak")
    assert mode(backup) == 0o600
    assert is_sound(backup)
    with sqlite3.connect(backup) as db:
        assert db.execute("PRAGMA user_version").fetchone()[0] == 1
        assert db.execute("SELECT count(*) FROM part").fetchone()[0] == 1
    assert not list(path.parent.glob("*.part"))


def test_what_was_always_allowed_before_holds_for_its_session_as_it_did(path: Path) -> None:
    one, other = session(), session()
    child = session(parent=one.id)
    always, once = question(one.id), question(one.id)
    with old_database(path, 2) as old:
        for each in (one, other, child):
            put_session(old, each)
        put_request(old, always, "always")
        put_request(old, once, "once")
    new = Store(path)
    assert [(each.id, each.directory) for each in new.permissions.list_all_grants()] == [
        (always.id, "")
    ]
    for holds in (one, child):
        assert [each.patterns for each in new.permissions.list_session_grants(holds.id)] == [
            always.always
        ]
    assert new.permissions.list_session_grants(other.id) == []
    new.append(deleted(one))
    assert new.permissions.list_all_grants() == []


def test_a_database_of_the_first_version_opens_and_keeps_facts(path: Path) -> None:
    one = session()
    with old_database(path, 1) as old:
        put_session(old, one)
    new = Store(path)
    assert new.facts.find(one.id) is None
    new.facts.add(one.id, "first")
    new.facts.add(one.id, "second")
    assert new.facts.find(one.id) == "first"
    new.append(deleted(one))
    assert new.facts.find(one.id) is None


def test_a_migration_that_fails_midway_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = session()
    Store(path).append(created(one))
    version = len(MIGRATIONS)
    bad = f"ALTER TABLE session ADD COLUMN extra TEXT; DROP TABLE nothing_like_it; PRAGMA user_version = {version + 1}"
    monkeypatch.setattr(database, "MIGRATIONS", (*MIGRATIONS, bad))
    with pytest.raises(StoreError, match="nothing_like_it"):
        Store(path)
    monkeypatch.setattr(database, "MIGRATIONS", MIGRATIONS)
    with sqlite3.connect(path) as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(session)")]
    assert "extra" not in columns
    assert Store(path).get_session(one.id) == one


async def test_who_follows_across_a_migration_is_told_to_read_anew(path: Path) -> None:
    one, message = session(), user("ses_1")
    with old_database(path, len(MIGRATIONS) - 1) as old:
        put_session(old, one)
        put_message(old, message)
        for _ in range(10):
            put_event(old, one.id)
    store = Store(path)
    last = store.read_last_seq()
    assert last == 12, "numbers go on"
    with pytest.raises(GapError, match="Read the state again"):
        await anext(store.follow(last - 1))
    store.append(updated(one), said(message))
    stream = store.follow(last)
    assert [(await anext(stream)).seq for _ in range(2)] == [last + 1, last + 2]
    store.close()


def test_a_newer_database_is_refused_and_left_as_it_is(path: Path) -> None:
    store = Store(path)
    store.append(created(session()))
    store.close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    before = path.read_bytes()
    with pytest.raises(
        StoreError, match=r"newer codeloop \(it is at version 99, this one knows"
    ) as raised:
        Store(path)
    assert str(path) in str(raised.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["text", "zeros", "header"])
def test_a_damaged_file_is_named_and_left_as_it_is(path: Path, damage: str) -> None:
    store = Store(path)
    store.append(created(session()))
    store.close()
    whole = path.read_bytes()
    broken = {
        "text": b"this is not a database\n" * 300,
        "zeros": bytes(len(whole)),
        "header": bytes(100) + whole[100:],
    }
    path.write_bytes(broken[damage])
    with pytest.raises(StoreError, match=r"is damaged .*move it away to start a new one") as raised:
        Store(path)
    assert str(path) in str(raised.value)
    assert path.read_bytes() == broken[damage]


def test_a_damaged_page_is_an_error_that_names_the_file(path: Path) -> None:
    store = Store(path)
    one = session()
    store.append(created(one), *(updated(session(title="x" * 3_000)) for _ in range(50)))
    store.close()
    data = bytearray(path.read_bytes())
    for page in range(2, len(data) // 4096):
        data[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    path.write_bytes(bytes(data))
    with pytest.raises(StoreError, match=r"codeloop\.db is damaged"):
        Store(path).list_sessions()


def test_a_full_database_says_what_to_do_and_keeps_what_was_stored(path: Path) -> None:
    store = Store(path)
    one = session()
    store.append(created(one))
    store._db.execute("PRAGMA max_page_count = 1")
    many = [updated(session(title="x" * 5_000)) for _ in range(100)]
    with pytest.raises(
        StoreError, match=r"The disk is full: nothing more can be stored in .*codeloop\.db"
    ):
        store.append(*many)
    assert store.read_last_seq() == 1, "all of it or nothing"
    store._db.execute("PRAGMA max_page_count = 1000000")
    store.append(updated(one))
    assert store.read_last_seq() == 2
    assert store.get_session(one.id) == one
    assert is_sound(path)


@pytest.mark.slow
def test_a_file_that_can_not_grow_loses_nothing_that_was_acknowledged(path: Path) -> None:
    Store(path).close()

    def cap() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))

    done = subprocess.run(
        script(FILLER, path, 1_000),
        preexec_fn=cap,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    *acknowledged, words = done.stdout.splitlines()
    assert str(path) in words
    assert "free space" in words or "disk is full" in words
    assert Store(path).read_last_seq() == int(acknowledged[-1]) > 5
    assert is_sound(path)


@pytest.mark.parametrize("made", [False, True])
def test_a_read_only_folder_is_named_with_what_to_do(*, made: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "data" / "codeloop.db"
        path.parent.mkdir()
        if made:
            store = Store(path)
            store.append(created(session()))
            store.close()
            path.chmod(0o444)
        path.parent.chmod(0o555)
        nobody = [65534] if os.geteuid() == 0 else []
        done = subprocess.run(
            script(FILLER, path, 1, *nobody),
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=60,
            check=False,
        )
        path.parent.chmod(0o755)
    assert done.returncode == 7, done.stderr
    assert "can't be written" in done.stdout
    assert "Make it writable, or set CODELOOP_HOME elsewhere." in done.stdout
    assert str(path.parent) in done.stdout


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(scale_examples(3)))
def test_what_a_killed_process_had_acknowledged_is_there(path: Path, seed: int) -> None:
    process = subprocess.Popen(script(WRITER, path), stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    time.sleep(random.Random(seed).random() * 0.1)
    process.send_signal(signal.SIGKILL)
    acknowledged = int(["1", *process.stdout.read().split()][-1])
    process.wait()
    store = Store(path)
    titles = {one.title for one in store.list_sessions(limit=1_000_000)}
    wanted = {f"{number}.{part}" for number in range(1, acknowledged + 1) for part in range(3)}
    assert wanted <= titles
    assert len(titles - wanted) in {0, 3}, "an append is there whole or not at all"
    assert is_sound(path)
    store.append(created(session()))


@pytest.mark.slow
def test_many_processes_may_open_a_new_database_at_once(path: Path) -> None:
    processes = [
        subprocess.Popen(script(OPENER, path), stderr=subprocess.PIPE, text=True, cwd=ROOT)
        for _ in range(5)
    ]
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 5, errors
    assert Store(path).read_last_seq() == 100


def test_one_process_at_a_time_brings_a_file_to_the_newest_version(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = list[bool]()

    def migrated(connection: sqlite3.Connection) -> None:
        try:
            with lock(path.parent, 0):
                held.append(False)
        except TimeoutError:
            held.append(True)
        migrate(connection)

    monkeypatch.setattr(database, "migrate", migrated)
    open_database(path).close()
    open_database(path).close()
    assert held == [True]
    other = path.with_name("other") / "codeloop.db"
    other.parent.mkdir()
    monkeypatch.setattr(
        database, "STORE_BUSY_TIME", msgspec.structs.replace(STORE_BUSY_TIME, value=10)
    )
    with lock(other.parent, 1), pytest.raises(StoreError, match="Another process has kept"):
        open_database(other)


def test_a_locked_database_is_waited_for_and_then_named(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(path)
    store._db.execute("PRAGMA busy_timeout = 50")
    holder = open_database(path)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(
        StoreError, match=r"Another process has kept the database .*codeloop\.db locked"
    ):
        store.append(created(session()))
    holder.execute("ROLLBACK")
    store.append(created(session()))
    assert store.read_last_seq() == 1


@pytest.mark.parametrize("is_shared", [False, True])
def test_what_deleted_sessions_took_is_given_back_also_while_another_process_reads(
    path: Path, *, is_shared: bool
) -> None:
    store, info = Store(path), session()
    message = user(info.id)
    store.append(
        created(info),
        said(message),
        put(text(message, random.Random(1).randbytes(10_000_000).hex())),
    )
    store.close()
    full = path.stat().st_size
    store = Store(path)
    store.append(deleted(info))
    reader = sqlite3.connect(path, isolation_level=None)
    if is_shared:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM session").fetchone()
    store.close()
    reader.close()
    assert path.stat().st_size < full / 4


def test_a_file_that_was_removed_or_replaced_is_not_written_to(tmp_path: Path) -> None:
    path, kept, mine = tmp_path / "codeloop.db", tmp_path / "kept", session(title="first")
    store = Store(path)
    try:
        store.append(created(mine))
        path.rename(kept)
        with pytest.raises(StoreError, match="was removed: nothing more of this session"):
            store.append(updated(mine))
        path.write_bytes(kept.read_bytes())
        with pytest.raises(StoreError, match="is another file now"):
            store.append(updated(mine))
        kept.replace(path)
        store.append(updated(msgspec.structs.replace(mine, title="stored")))
        assert store.get_session(mine.id).title == "stored"
    finally:
        store.close()


OLD_TRANSACTIONS = {
    "session": "INSERT OR REPLACE INTO session (id, parent_id, directory, title, updated, data)"
    " VALUES ('ses_1', NULL, '/', 'old', 1, '{}')",
    "message": "INSERT OR REPLACE INTO message (id, session_id, created, data) VALUES ('msg_1', 'ses_1', 1, '{}')",
    "part": "INSERT OR REPLACE INTO part (id, message_id, session_id, data) VALUES ('prt_2', 'msg_1', 'ses_1', '{}')",
    "todo": "INSERT OR REPLACE INTO todo (session_id, data) VALUES ('ses_1', '[]')",
    "part removed": "DELETE FROM part WHERE id = 'prt_1'",
    "message removed": "DELETE FROM message WHERE id = 'msg_1'",
    "session deleted": "DELETE FROM session WHERE id = 'ses_1'",
}
"""What version 4 writes for a kind of event, before the event itself."""


def store_as_before(old: sqlite3.Connection, statement: str) -> None:
    with transaction(old):
        old.execute(statement)
        old.execute("INSERT INTO event (session_id, data) VALUES ('ses_1', '{}')")


@pytest.mark.parametrize("statement", OLD_TRANSACTIONS.values(), ids=OLD_TRANSACTIONS)
def test_a_process_of_the_version_before_changes_nothing_after_the_migration(
    path: Path, statement: str
) -> None:
    one = session("ses_1")
    message = user(one.id, "msg_1")
    with old_database(path, 4) as old:
        put_session(old, one)
        put_message(old, message)
        put_part(old, text(message, "kept", "prt_1"))
        Store(path).close()
        before = list(old.iterdump())
        with pytest.raises(sqlite3.Error):
            store_as_before(old, statement)
        assert list(old.iterdump()) == before


def test_a_number_that_another_program_took_is_not_given_again(path: Path) -> None:
    store = Store(path)
    store.append(deleted(session()))
    store._db.execute("INSERT INTO event SELECT last + 3, NULL, 'garbage' FROM outbox")
    assert store.append(deleted(session()), deleted(session())) == 6
    assert store.append(deleted(session())) == 7
    store.close()


CHECKPOINT = """
import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone())
"""


@pytest.mark.parametrize("mode", ["PASSIVE", "FULL", "RESTART", "TRUNCATE"])
def test_a_checkpoint_of_another_program_loses_nothing(path: Path, mode: str) -> None:
    store, one = Store(path), session()
    store.append(created(one))
    for title in ("first", "second"):
        pragma = f"PRAGMA wal_checkpoint({mode})"
        subprocess.run(script(CHECKPOINT, path, pragma), check=True, capture_output=True)
        store.append(updated(replace(one, title=title)))
        assert Store(path).get_session(one.id).title == title
    store.close()


@pytest.mark.parametrize(("is_index_cut", "is_read"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("size", [0, 10_000])
def test_a_log_that_was_cut_is_not_written_to(
    path: Path, size: int, *, is_index_cut: bool, is_read: bool
) -> None:
    store, one = Store(path), session()
    store.append(created(one))
    os.truncate(f"{path}-wal", size)
    if is_index_cut:
        os.truncate(f"{path}-shm", 0)
    if is_read:
        # Another process makes the index anew, of what is left.
        read = script(CHECKPOINT, path, "PRAGMA user_version")
        subprocess.run(read, check=False, capture_output=True)
    with pytest.raises(StoreError, match="has lost what was written last"):
        store.append(updated(one))
    store.close()
