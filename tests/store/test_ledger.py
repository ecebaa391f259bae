"""The ledger: what was spent stays as it is, is dated in order,
and is found in databases of every version.
"""

from contextlib import closing
from pathlib import Path

import pytest

from codeloop.schema.event import make_part_updated
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.message import NO_TOKENS, CacheTokens, Session, SessionTime, Tokens
from codeloop.schema.part import ToolPart, ToolStatePending
from codeloop.schema.wire import replace
from codeloop.store.database import StoreError
from codeloop.store.ledger import PaidRequest, Spent, open_ledger
from codeloop.store.store import Store
from tests.store.old_database import old_database, put_message, put_part, put_session
from tests.store.states import assistant, created, deleted, said, session, unsaid, user

USED = Tokens(
    input=100, output=10, reasoning=1, cache=CacheTokens(read=5, write=2, hour_write=1), estimated=7
)
REQUEST = PaidRequest(
    session_id="ses_1",
    root_id="ses_1",
    message_id="",
    directory="/p",
    path="",
    model="p/m",
    kind="turn",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "codeloop.db"


def test_a_row_that_is_settled_never_changes_and_none_is_deleted(path: Path) -> None:
    store = Store(path)
    entry = store.ledger.begin(replace(REQUEST, cost=0.1))
    assert [each.cost for each in store.ledger.list_requests(0)] == [0.1]
    entry.update(0.2, USED)
    entry.settle(0.3, USED)
    for sql in ("DELETE FROM spending", "UPDATE spending SET cost = 0"):
        with (
            pytest.raises(StoreError, match=r"what was spent (never|is never)"),
            store._db.transaction(),
        ):
            store._db.execute(sql)
    store.close()
    with closing(open_ledger(path)) as ledger:
        (request,) = ledger.list_requests(0)
    assert (request.cost, request.tokens, request.model, request.kind) == (0.3, USED, "p/m", "turn")


def test_what_is_undone_or_deleted_stays_with_a_mark(path: Path) -> None:
    store = Store(path)
    one = session()
    kept, undone = assistant(one.id, "msg_0"), assistant(one.id, "msg_0")
    store.append(created(one), said(kept), said(undone))
    for answer in (kept, undone):
        request = replace(REQUEST, session_id=one.id, root_id=one.id, message_id=answer.id)
        store.ledger.begin(request).settle(1.0, USED)
    store.ledger.begin(replace(REQUEST, session_id=one.id, root_id=one.id, kind="title")).settle(
        1.0, USED
    )
    store.append(unsaid(undone))
    assert [each.is_kept for each in store.ledger.list_requests(0)] == [True, False, True]
    store.append(deleted(one))
    assert [each.is_kept for each in store.ledger.list_requests(0)] == [False, False, False]
    assert store.ledger.sum_root(one.id) == 3.0
    assert len(store.ledger.list_session_requests(one.id, [])) == 3


def test_prompts_and_calls_are_counted_between_two_times(path: Path) -> None:
    store = Store(path)
    one = session()
    prompts = [user(one.id, at=at) for at in (10, 20, 30)]
    answer = assistant(one.id, prompts[1].id, at=25)
    call = ToolPart(
        id=new_id("prt"),
        session_id=one.id,
        message_id=answer.id,
        call_id="c",
        tool="bash",
        state=ToolStatePending(input={}, raw=""),
    )
    store.append(created(one), *map(said, (*prompts, answer)), make_part_updated(call))
    assert store.ledger.count_prompts(0, 100) == 3
    assert store.ledger.count_prompts(15, 25) == 1
    assert store.ledger.count_calls(0, 100) == {("bash", "pending"): 1}
    assert store.ledger.count_calls(26, 100) == {}
    store.close()


def test_a_clock_that_is_set_back_dates_no_row_before_earlier_ones(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(path)
    times = iter((5_000, 1_000, 6_000))
    monkeypatch.setattr("codeloop.store.ledger.now_ms", lambda: next(times))
    for _ in range(3):
        store.ledger.begin(replace(REQUEST, cost=1.0))
    assert [each.time for each in store.ledger.list_requests(0)] == [5_000, 5_000, 6_000]
    assert store.ledger.sum_spent(5_000, 0, None) == Spent(3.0, 3.0)
    assert store.ledger.sum_spent(5_500, 5_000, "/p") == Spent(1.0, 3.0)
    assert store.ledger.sum_spent(6_001, 6_001, None) == Spent(0.0, 0.0)
    assert store.ledger.sum_spent(0, 0, "/other") == Spent(0.0, 0.0)


def fill_old_database(path: Path, version: int) -> tuple[Session, Session]:
    """Store what an earlier version has: a parent with a title, a subagent, a copy,
    and answers of all kinds.
    """
    now = now_ms() - 60_000
    usage = {
        "cost": 0.25,
        "tokens": {"input": 9, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}},
    }
    title = {"created": now + 5, "providerID": "p", "modelID": "small", **usage}
    parent = replace(
        session(), directory="/p/sub", path="sub", metadata={"title": title, "judgedUsage": {"cost": "wrong"}},
        time=SessionTime(created=now, updated=now),
    )  # fmt: skip
    child = replace(session(parent=parent.id), time=SessionTime(created=now, updated=now))
    copy = replace(session(), time=SessionTime(created=now + 100, updated=now))
    with old_database(path, version) as old:
        for each in (parent, child, copy):
            put_session(old, each)
        for at, (owner, kind) in enumerate(
            ((parent, "turn"), (child, "subagent"), (parent, "compaction"), (copy, "copy"))
        ):
            answer = replace(
                assistant(owner.id, "msg_0", at=now + at), cost=0.5, tokens=USED, retried=USED,
                summary=True if kind == "compaction" else None,
            )  # fmt: skip
            call = ToolPart(
                id=f"prt_{at}", session_id=owner.id, message_id=answer.id, call_id="c", tool="bash",
                state=ToolStatePending(input={}, raw=""),
            )  # fmt: skip
            put_message(old, user(owner.id))
            put_message(old, answer)
            put_part(old, call)
    return parent, child


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("is_migrated", [False, True])
def test_what_older_databases_hold_is_found(path: Path, version: int, *, is_migrated: bool) -> None:
    parent, child = fill_old_database(path, version)
    if is_migrated:
        Store(path).close()
    with closing(open_ledger(path)) as ledger:
        requests = ledger.list_requests(0)
        spent = ledger.sum_spent(0, 0, "/p/sub")
        total = ledger.sum_root(parent.id)
    assert [(each.kind, each.session_id, each.root_id, each.cost) for each in requests] == [
        ("turn", parent.id, parent.id, 0.5),
        ("subagent", child.id, parent.id, 0.5),
        ("compaction", parent.id, parent.id, 0.5),
        ("title", parent.id, parent.id, 0.25),
    ]
    assert [each.tokens for each in requests] == [
        *(USED.plus(USED),) * 3,
        replace(NO_TOKENS, input=9, output=1),
    ]
    assert [each.tool_calls for each in requests] == [1, 1, 1, 0]
    assert {each.model for each in requests} == {"scripted/script", "p/small"}
    assert (requests[0].directory, requests[0].path, spent, total) == (
        "/p/sub",
        "sub",
        Spent(1.25, 1.25),
        1.75,
    )
    assert all(each.is_kept for each in requests)


def test_a_newer_database_is_not_read(path: Path) -> None:
    store = Store(path)
    store._db.execute("PRAGMA user_version = 99")
    store.close()
    with pytest.raises(StoreError, match="of another codeloop"):
        open_ledger(path)
