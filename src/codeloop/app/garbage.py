"""Finds what codeloop keeps on this machine although nothing has used it for long:
for `codeloop gc`.

Only what lies in codeloop's own data folder counts. Sessions are never among it, unless the user
asks for them or a fleet that is removed has made them. What was paid stays in their database.
"""

import os
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from codeloop.config.paths import Paths
from codeloop.extend.hooks.configured.transcript import remove_transcripts
from codeloop.kit.remove_tree import remove_tree
from codeloop.schema.errors import CodeloopError
from codeloop.schema.event import make_session_deleted
from codeloop.schema.message import Session
from codeloop.store.database import StoreError
from codeloop.store.queries import NO_LIMIT, SessionFilter, open_queries
from codeloop.store.search_index import get_index_path
from codeloop.store.store import Store

GarbageKind = Literal["sessions", "undo", "fleet", "log", "backup", "search index"]


class Garbage(Struct, frozen=True):
    """One thing that can go. `path`: the file or folder, of sessions their database;
    `sessions`: the sessions; `used_at`: when it was last used, in s since the epoch.
    """

    kind: GarbageKind
    path: Path
    bytes: int
    used_at: float
    sessions: tuple[Session, ...] = ()


def find_garbage(paths: Paths, used_before: float, *, has_sessions: bool) -> Iterator[Garbage]:
    """Yield what was not used since `used_before` (s since the epoch). Blocks.

    `has_sessions`: sessions count, too. What can't be read is left out.
    """
    data = paths.data
    fleets = [*_find_old_folders("fleet", data / "fleet", used_before)]
    yield from fleets
    for database in paths.find_databases():
        with suppress(StoreError, OSError), closing(open_queries(database)) as queries:
            sessions = queries.find_sessions(SessionFilter(only_roots=True, limit=NO_LIMIT))
            old = tuple(
                session
                for session in sessions
                if session.time.updated < used_before * 1000
                and (has_sessions or _is_in_any(session.directory, fleets))
            )
            if old:
                size = queries.measure_sessions([session.id for session in old])
                newest = max(session.time.updated for session in old) / 1000
                yield Garbage("sessions", database, size, newest, old)
        yield from _find_old_folders("undo", database.with_name("snapshot"), used_before)
        for file in sorted(database.parent.glob(f"{database.name}.v*.bak")):
            yield from _find_old(file, "backup", used_before)
        yield from _find_old(get_index_path(database), "search index", used_before)
    for file in sorted(paths.log_folder.glob("*")):
        yield from _find_old(file, "log", used_before)


def remove_garbage(garbage: Garbage) -> str:
    """Remove it. Returns why not all of it could go; "": it is gone. Blocks."""
    try:
        if garbage.sessions:
            _delete_sessions(garbage.path, garbage.sessions)
        elif garbage.path.is_dir():
            remove_tree(garbage.path)
        else:
            garbage.path.unlink(missing_ok=True)
    except OSError as error:
        return f"{garbage.path}: {error.strerror or error}"
    except CodeloopError as error:
        return str(error)
    return ""


def _delete_sessions(database: Path, sessions: tuple[Session, ...]) -> None:
    """Delete sessions with those of their subagents. Raises CodeloopError for one that is busy."""
    store = Store(database)
    try:
        for session in sessions:
            family = store.list_family(session)
            for each in family:
                store.leases.check_free(each.id)
            store.append(*(make_session_deleted(each) for each in reversed(family)))
            remove_transcripts(database.parent, [each.id for each in family])
    finally:
        store.close()


def _find_old_folders(kind: GarbageKind, folder: Path, used_before: float) -> Iterator[Garbage]:
    with suppress(OSError):
        for each in sorted(folder.iterdir()):
            yield from _find_old(each, kind, used_before)


def _find_old(path: Path, kind: GarbageKind, used_before: float) -> Iterator[Garbage]:
    """Yield a file or folder if nothing in it was changed since then."""
    size, used_at = 0, 0.0
    names = [path]
    for top, folders, files in os.walk(path):
        names += [Path(top, name) for name in (*folders, *files)]
    for name in names:
        with suppress(OSError):
            found = os.lstat(name)
            size += found.st_size
            used_at = max(used_at, found.st_mtime)
    if 0 < used_at < min(used_before, time.time()):
        yield Garbage(kind, path, size, used_at)


def _is_in_any(directory: str, fleets: list[Garbage]) -> bool:
    return any(Path(directory).is_relative_to(each.path) for each in fleets)
