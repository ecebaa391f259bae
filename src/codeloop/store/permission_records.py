"""The grants and decisions in the database: what "always" allows from now on,
and the reason of each decision.
"""

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from codeloop.schema.ids import now_ms
from codeloop.schema.limits import STORE_DECISIONS
from codeloop.schema.permission import Decision, Grant, PermissionRequest
from codeloop.schema.wire import JSON, encode_json
from codeloop.store.database import Database, StoreError
from codeloop.store.packing import pack, unpack

_decode_texts = msgspec.json.Decoder(list[str]).decode
_decode_decision = msgspec.json.Decoder(Decision).decode

WORKDIR_KEY = "workdir"
"""The key in a request's metadata for the directory in which a command would run,
if not the session's.
"""
ADDRESS_KEY = "address"
"""The key in a request's metadata for the current addresses of a host,
and why they are not public.
"""
_PRUNE_INTERVAL = 100
"""The number of decisions between two deletions of old ones."""
_SELECT_GRANTS = "SELECT id, session_id, directory, time, permission, patterns, place FROM remembered ORDER BY time, id"
_SELECT_SESSION_GRANTS = """
    WITH RECURSIVE lineage(id) AS (
        VALUES (?1) UNION SELECT parent_id FROM session JOIN lineage USING (id) WHERE parent_id IS NOT NULL)
    SELECT id, session_id, directory, time, permission, patterns, place FROM remembered
    WHERE (directory = '' AND session_id IN lineage) OR directory = (SELECT directory FROM session WHERE id = ?1)
    ORDER BY time, id"""


def get_grant_place(metadata: JSON) -> str:
    """Return the `place` of a grant, its limit besides the patterns: a command's directory,
    a host's address, or "".
    """
    place = metadata.get(WORKDIR_KEY) or metadata.get(ADDRESS_KEY)
    return place if isinstance(place, str) else ""


class PermissionRecords:
    """The grants and decisions of one project.
    Each method raises StoreError when the file fails.
    """

    def __init__(self, db: Database) -> None:
        self._db = db

    def store_always_answer(self, request: PermissionRequest) -> None:
        """Store what the answer "always" allows, for the directory of the session that asked."""
        if not request.always:
            return
        values = (
            request.id,
            request.session_id,
            now_ms(),
            request.permission,
            encode_json(request.always).decode(),
            get_grant_place(request.metadata),
        )
        self._db.execute(
            "INSERT OR IGNORE INTO remembered SELECT ?1, id, directory, ?3, ?4, ?5, ?6 FROM session WHERE id = ?2",
            values,
        )

    def store_session_answer(self, request: PermissionRequest, session_id: str) -> None:
        """Store what the answer "always" allows, for the rest of a session: the one that asked,
        or a parent of it.
        """
        if request.always:
            grant = Grant(
                id=request.id,
                session_id=session_id,
                directory="",
                time=now_ms(),
                permission=request.permission,
                patterns=request.always,
                place=get_grant_place(request.metadata),
            )
            self.add_grants([grant])

    def add_grants(self, grants: Sequence[Grant]) -> None:
        """Store grants as they are; those that are here already stay.
        One without a directory ends with its session.
        """
        for each in grants:
            patterns = encode_json(each.patterns).decode()
            owner = (each.id, each.session_id, each.directory, each.time)
            self._db.execute(
                "INSERT OR IGNORE INTO remembered VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*owner, each.permission, patterns, each.place),
            )

    def list_session_grants(self, session_id: str) -> list[Grant]:
        """Return the grants in force in a session: for its directory,
        or for it or a parent session.
        """
        return [_make_grant(row) for row in self._db.fetch_all(_SELECT_SESSION_GRANTS, session_id)]

    def list_all_grants(self) -> list[Grant]:
        """Return all grants, oldest first."""
        return [_make_grant(row) for row in self._db.fetch_all(_SELECT_GRANTS)]

    def revoke(self, ids: Sequence[str]) -> None:
        """Delete grants by their ids; from the next call on, the user is asked again."""
        with self._db.transaction():
            for grant_id in ids:
                self._db.execute("DELETE FROM remembered WHERE id = ?", (grant_id,))

    def store_decision(self, decision: Decision) -> None:
        """Store a decision; once in `_PRUNE_INTERVAL` decisions, delete the oldest."""
        number = self._db.execute(
            "INSERT INTO decision (session_id, action, data) VALUES (?, ?, ?)",
            (
                decision.session_id,
                decision.action,
                pack(encode_json(decision), decision.session_id),
            ),
        )
        if number % _PRUNE_INTERVAL == 0:
            # The decision is stored, so this must not fail; old ones can be removed next time.
            with suppress(StoreError):
                self._db.execute(
                    "DELETE FROM decision WHERE id <= ?", (number - STORE_DECISIONS.value,)
                )

    def list_decisions(
        self,
        session_id: str | None = None,
        *,
        denied: bool = False,
        limit: int = STORE_DECISIONS.value,
    ) -> list[Decision]:
        """Return the newest decisions, oldest first; if asked for, only those of one session,
        or only denials.
        """
        sql = """
            SELECT session_id, data FROM decision WHERE (?1 IS NULL OR session_id = ?1) AND (?2 = 0 OR action = 'deny')
            ORDER BY id DESC LIMIT ?3"""
        rows = self._db.fetch_all(sql, session_id, int(denied), limit)
        return [_decode_decision(unpack(data, owner)) for owner, data in reversed(rows)]


def _make_grant(row: tuple[str, str, str, int, str, str, str]) -> Grant:
    grant_id, session_id, directory, time, permission, patterns, place = row
    return Grant(
        id=grant_id,
        session_id=session_id,
        directory=directory,
        time=time,
        permission=permission,
        patterns=_decode_texts(patterns),
        place=place,
    )
