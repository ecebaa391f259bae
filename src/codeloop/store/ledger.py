"""The ledger of spending: a row for each request to a model, and what it has cost.

Nothing that happens to a session changes it: no undo, deletion, fork, import or compaction. The
database itself refuses to delete a row, or to change one whose answer has ended.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from codeloop.schema.ids import now_ms
from codeloop.schema.message import NO_TOKENS, CacheTokens, Tokens
from codeloop.store.database import Database

RequestKind = Literal["turn", "subagent", "compaction", "title", "judge", "check"]
"""What a request was for.

- turn, subagent: a step of a turn, or of a subagent's; compaction: a summary.
  Their answers are messages.
- title: the title of a session; judge: the verdict about an event for a hook, or about a goal.
- check: `codeloop doctor --online`, which belongs to no session.
"""
_SELECT_REQUESTS = """
    SELECT time, session_id, root_id, message_id, directory, path, model, kind, cost, input, output, reasoning,
        cache_read, cache_write, hour_write, estimated, tool_calls,
        CASE WHEN message_id = '' THEN session_id = '' OR session_id IN (SELECT id FROM session)
            ELSE message_id IN (SELECT id FROM message) END
    FROM spending"""


class PaidRequest(Struct, frozen=True, kw_only=True):
    """A request to a model.

    `root_id`: the session, or the topmost parent of a subagent's. `message_id`: the message with
    the answer; "": none. `directory` and `path`: those of the session. `model`: `provider/model`.
    `time`: when it was sent, in ms since the epoch, but never before an earlier row. `cost`: in
    dollars. `is_kept`: False if the answer, or the session of a request without a message,
    was undone or deleted since.
    """

    session_id: str
    root_id: str
    message_id: str
    directory: str
    path: str
    model: str
    kind: RequestKind
    time: int = 0
    cost: float = 0.0
    tokens: Tokens = NO_TOKENS
    tool_calls: int = 0
    is_kept: bool = True

    @property
    def is_step(self) -> bool:
        """Whether the answer is a message."""
        return self.kind in {"turn", "subagent", "compaction"}


class LedgerEntry:
    """The row of one request, from when it is sent.

    Its cost is kept up to date while the answer comes, so that other processes count it,
    and the next one after a crash.
    """

    def __init__(self, db: Database, number: int, message_id: str) -> None:
        self._db = db
        self._number = number
        self._message_id = message_id

    def update(self, cost: float, tokens: Tokens) -> None:
        """Store what the request has cost so far, in dollars."""
        self._put(cost, tokens, is_open=True)

    def settle(self, cost: float, tokens: Tokens) -> None:
        """Store what the request has cost in all, and how many calls its answer has.
        The row never changes again.
        """
        self._put(cost, tokens, is_open=False)

    def _put(self, cost: float, tokens: Tokens, *, is_open: bool) -> None:
        sql = """
            UPDATE spending SET cost = ?, input = ?, output = ?, reasoning = ?, cache_read = ?, cache_write = ?,
                hour_write = ?, estimated = ?, is_open = ?, tool_calls = (
                    SELECT count(*) FROM part JOIN message ON message.number = part.message WHERE message.id = ?
                    AND substr(json_of(part.data, message.session_id, message.id, part.id), 1, 14)
                        = CAST('{"type":"tool"' AS BLOB))
            WHERE number = ?"""
        self._db.execute(
            sql, (cost, *_list_counts(tokens), int(is_open), self._message_id, self._number)
        )


class Spent(Struct, frozen=True):
    """Dollars that were spent since two points in time."""

    today: float
    this_month: float


class SpendingLedger:
    """The ledger of one database. Each method raises StoreError when the file fails."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def begin(self, request: PaidRequest) -> LedgerEntry:
        """Add a request that is about to be sent, with the cost and tokens that are known of it."""
        # A clock that was set back does not date a row before earlier ones: it would
        # count for a day that is over.
        sql = """
            INSERT INTO spending (time, session_id, root_id, message_id, directory, path, model, kind, cost, input,
                output, reasoning, cache_read, cache_write, hour_write, estimated, tool_calls, is_open)
            VALUES (max(?, coalesce((SELECT time FROM spending ORDER BY number DESC LIMIT 1), 0)),
                ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 1)"""
        owner = (
            request.session_id,
            request.root_id,
            request.message_id,
            request.directory,
            request.path,
        )
        values = (
            now_ms(),
            *owner,
            request.model,
            request.kind,
            request.cost,
            *_list_counts(request.tokens),
        )
        return LedgerEntry(self._db, self._db.execute(sql, values), request.message_id)

    def list_requests(self, since: int) -> list[PaidRequest]:
        """Return the requests since a time (ms since the epoch)."""
        sql = f"{_SELECT_REQUESTS} WHERE time >= ? ORDER BY number"
        return list(map(_make_request, self._db.fetch_all(sql, since)))

    def count_prompts(self, start: int, end: int) -> int:
        """Return how many messages of users are stored that were written between two times
        (ms since the epoch).
        """
        sql = """
            SELECT count(*) FROM message WHERE created BETWEEN ? AND ?
            AND json_extract(CAST(json_of(data, session_id, id) AS TEXT), '$.role') = 'user'"""
        row = self._db.fetch_one(sql, start, end)
        return row[0] if row else 0

    def count_calls(self, start: int, end: int) -> dict[tuple[str, str], int]:
        """Return how many calls of messages that were begun between two times (ms since the epoch)
        are stored, by tool and state.
        """
        sql = """
            SELECT json_extract(value, '$.tool'), json_extract(value, '$.state.status'), count(*) FROM (
                SELECT CAST(json_of(part.data, message.session_id, message.id, part.id) AS TEXT) AS value
                FROM message JOIN part ON part.message = message.number WHERE message.created BETWEEN ? AND ?)
            WHERE json_extract(value, '$.type') = 'tool' GROUP BY 1, 2"""
        rows = self._db.fetch_all(sql, start, end)
        return {(tool, status): count for tool, status, count in rows}

    def list_session_requests(
        self, root_id: str, session_ids: Collection[str]
    ) -> list[PaidRequest]:
        """Return the requests of sessions, and of all below the topmost session `root_id`,
        deleted ones included.
        """
        ids = msgspec.json.encode(list(session_ids)).decode()
        condition = "root_id = ? OR session_id IN (SELECT value FROM json_each(?))"
        sql = f"{_SELECT_REQUESTS} WHERE {condition} ORDER BY number"
        return list(map(_make_request, self._db.fetch_all(sql, root_id, ids)))

    def sum_root(self, root_id: str) -> float:
        """Return what a topmost session has cost with all subagents, in dollars,
        undone and deleted work included.
        """
        row = self._db.fetch_one("SELECT total(cost) FROM spending WHERE root_id = ?", root_id)
        return row[0] if row else 0.0

    def sum_spent(self, day_start: int, month_start: int, directory: str | None) -> Spent:
        """Return what was spent since the starts of a day and its month (ms since the epoch),
        by a directory or all.

        Rows that are dated later than now count too: the clock was set back since.
        """
        # Times never decrease, so all rows from the first one on are read in their order,
        # without the index.
        sql = """
            SELECT total(CASE WHEN time >= ?1 THEN cost END), total(cost) FROM spending
            WHERE number >= (SELECT number FROM spending WHERE time >= ?2 ORDER BY time, number LIMIT 1)
                AND (?3 IS NULL OR directory = ?3)"""
        today, this_month = self._db.fetch_one(sql, day_start, month_start, directory) or (0.0, 0.0)
        return Spent(today, this_month)


def open_ledger(path: Path) -> SpendingLedger:
    """Open a database for reading its ledger only. Raises StoreError if it is missing,
    damaged or from a newer version.
    """
    return SpendingLedger(Database(path, read_only=True))


def _list_counts(tokens: Tokens) -> tuple[int, ...]:
    """Return tokens as the columns of a row."""
    cache = tokens.cache
    return (
        tokens.input,
        tokens.output,
        tokens.reasoning,
        cache.read,
        cache.write,
        cache.hour_write,
        tokens.estimated or 0,
    )


def _make_request(row: tuple[Any, ...]) -> PaidRequest:
    (
        time,
        session_id,
        root_id,
        message_id,
        directory,
        path,
        model,
        kind,
        cost,
        *counts,
        tool_calls,
        is_kept,
    ) = row
    input_tokens, output, reasoning, cache_read, cache_write, hour_write, estimated = counts
    tokens = Tokens(
        input=input_tokens,
        output=output,
        reasoning=reasoning,
        cache=CacheTokens(read=cache_read, write=cache_write, hour_write=hour_write),
        estimated=estimated or None,
    )
    return PaidRequest(
        session_id=session_id,
        root_id=root_id,
        message_id=message_id,
        directory=directory,
        path=path,
        model=model,
        kind=kind,
        time=time,
        cost=cost,
        tokens=tokens,
        tool_calls=tool_calls,
        is_kept=bool(is_kept),
    )
