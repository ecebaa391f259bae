"""Questions wait in the store for whoever answers them."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from codeloop.kit.wildcard import ANY_TEXT
from codeloop.permission.gate import CallRules, Denied, Gate, Rejected
from codeloop.permission.questions import settle_question
from codeloop.permission.rules import RuleLayer
from codeloop.schema.event import (
    PermissionAnswer,
    PermissionAsked,
    PermissionReplied,
    make_session_created,
    make_session_deleted,
)
from codeloop.schema.limits import STORE_DECISIONS
from codeloop.schema.message import Session, SessionTime
from codeloop.schema.permission import (
    AUTO_MESSAGE,
    NOBODY_MESSAGE,
    Action,
    Need,
    PermissionRequest,
    PermissionRule,
    QuestionTool,
    Reply,
)
from codeloop.schema.wire import replace
from codeloop.store import permission_records
from codeloop.store.permission_records import ADDRESS_KEY, WORKDIR_KEY
from codeloop.store.store import Store

TOOL = QuestionTool(message_id="msg_1", call_id="call_1")


def rules(*given: PermissionRule, approves_questions: bool = False) -> CallRules:
    return CallRules(((RuleLayer("built-in", given),),), approves_questions=approves_questions)


ASK = rules(PermissionRule(permission="*", pattern="*", action="ask"))


def session(session_id: str, parent: str | None = None) -> Session:
    return Session(
        id=session_id,
        slug="a-b",
        project_id="global",
        directory="/w",
        title="t",
        version="1",
        time=SessionTime(created=1, updated=1),
        parent_id=parent,
    )


def rule(pattern: str, action: Action, permission: str = "bash") -> PermissionRule:
    return PermissionRule(permission=permission, pattern=pattern, action=action)


def need(*patterns: str, always: tuple[str, ...] = (), possible: tuple[str, ...] = ()) -> Need:
    return Need(permission="bash", patterns=patterns, always=always, possible=possible)


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store, None]:
    opened = Store(tmp_path / "codeloop.db")
    for session_id, parent in (("ses_a", None), ("ses_child", "ses_a"), ("ses_b", None)):
        info = session(session_id, parent)
        opened.append(make_session_created(info))
    yield opened
    opened.close()


async def waiting(
    store: Store, count: int, session_id: str | None = None
) -> list[PermissionRequest]:
    async with asyncio.timeout(30):
        while len(pending := store.list_pending_permissions(session_id)) < count:
            await asyncio.sleep(0.002)
    return pending


def ask(gate: Gate, wanted: Need, session_id: str = "ses_a") -> asyncio.Task[bool]:
    return asyncio.create_task(gate.authorize([wanted], session_id, TOOL, ASK))


def reply(
    gate: Gate, request: PermissionRequest, answer: Reply, message: str | None = None
) -> bool:
    given = PermissionAnswer(
        session_id=request.session_id, request_id=request.id, reply=answer, message=message
    )
    return settle_question(gate.store, given)


def reply_for_session(gate: Gate, request: PermissionRequest) -> bool:
    return settle_question(
        gate.store,
        PermissionAnswer(
            session_id=request.session_id, request_id=request.id, reply="always", scope="session"
        ),
    )


async def test_what_the_rules_allow_passes_without_a_trace(store: Store) -> None:
    before = store.read_last_seq()
    await Gate(store).authorize([need("ls")], "ses_a", TOOL, rules(rule("*", "allow")))
    assert store.read_last_seq() == before


async def test_what_a_rule_denies_names_the_rule(store: Store) -> None:
    with pytest.raises(Denied, match=r"by the rule bash rm \*: deny: bash rm x"):
        await Gate(store).authorize(
            [need("rm x")], "ses_a", TOOL, rules(rule("*", "allow"), rule("rm *", "deny"))
        )


async def test_once_lets_this_call_pass_and_the_next_one_asks_again(store: Store) -> None:
    gate = Gate(store)
    for _ in range(2):
        task = ask(gate, need("ls", always=("ls *",)))
        (request,) = await waiting(store, 1)
        assert (request.patterns, request.always, request.tool) == (["ls"], ["ls *"], TOOL)
        assert reply(gate, request, "once")
        await task
    assert store.list_pending_permissions() == []


LS = ("ls *",)


async def test_always_holds_for_the_directory_it_was_given_in_and_no_other(store: Store) -> None:
    store.append(make_session_created(replace(session("ses_clone"), directory="/other")))
    gate = Gate(store)
    task = ask(gate, need("ls", always=LS))
    reply(gate, (await waiting(store, 1))[0], "always")
    await task
    for session_id in ("ses_a", "ses_child", "ses_b"):
        await gate.authorize([need("ls -la", always=LS)], session_id, TOOL, ASK)
    assert gate.list_grants("ses_clone", need("ls", always=LS)) == []
    elsewhere = replace(need("ls", always=LS), metadata={WORKDIR_KEY: "vendor"})
    assert gate.list_grants("ses_a", elsewhere) == []
    assert gate.list_grants("ses_a", need("ls")) == []
    with pytest.raises(Denied):
        await gate.authorize(
            [need("ls -la", always=LS)], "ses_a", TOOL, rules(rule("ls *", "deny"))
        )


@pytest.mark.parametrize("asker", ["ses_a", "ses_child"])
async def test_an_answer_for_the_session_holds_in_it_and_its_subagents_alone_until_it_is_deleted(
    store: Store, asker: str
) -> None:
    gate = Gate(store)
    first = ask(gate, need("npm test", always=("npm test *",)), asker)
    (request,) = await waiting(store, 1)
    other = ask(
        gate,
        need("npm test b", always=("npm test *",)),
        "ses_a" if asker == "ses_child" else "ses_child",
    )
    elsewhere = ask(gate, need("npm test c", always=("npm test *",)), "ses_b")
    await waiting(store, 3)
    assert reply_for_session(gate, request)
    # What waits in the session and its subagents is answered too,
    # and the answer says how far it holds.
    assert await first
    assert await other
    assert [each.session_id for each in store.list_pending_permissions()] == ["ses_b"]
    elsewhere.cancel()
    await asyncio.wait([elsewhere])
    for session_id in ("ses_a", "ses_child"):
        assert not await gate.authorize(
            [need("npm test x", always=("npm test *",))], session_id, TOOL, ASK
        )
    (grant,) = store.permissions.list_all_grants()
    assert (grant.session_id, grant.directory, grant.patterns) == ("ses_a", "", ["npm test *"])
    assert store.permissions.list_decisions(asker)[0].by == "person, session"
    # Revoked as any other.
    store.permissions.revoke([grant.id])
    again = ask(gate, need("npm test", always=("npm test *",)))
    (request,) = await waiting(store, 1)
    assert reply_for_session(gate, request)
    assert await again
    store.append(make_session_deleted(session("ses_a")))
    assert not store.permissions.list_all_grants()


async def test_always_for_a_host_holds_while_its_name_leads_to_the_same_addresses(
    store: Store,
) -> None:
    gate, host = Gate(store), ("wiki.test:443",)

    def private(address: str) -> Need:
        return Need(
            permission="webfetch_private",
            patterns=host,
            always=host,
            metadata={ADDRESS_KEY: address},
        )

    task = ask(gate, private("10.0.0.5 (private)"))
    waits = ask(gate, private("169.254.169.254 (link-local)"))
    first = next(
        each for each in await waiting(store, 2) if "10.0.0.5" in each.metadata[ADDRESS_KEY]
    )
    reply(gate, first, "always")
    await task
    assert not waits.done(), "the other question is about another address"
    assert not await gate.authorize([private("10.0.0.5 (private)")], "ses_a", TOOL, ASK)
    assert gate.list_grants("ses_a", private("169.254.169.254 (link-local)")) == []
    waits.cancel()
    await asyncio.gather(waits, return_exceptions=True)


@pytest.mark.parametrize(
    ("permission", "plain", "guarded"), [("read", "a.txt", ".env"), ("edit", "a.txt", "AGENTS.md")]
)
async def test_always_for_any_file_leaves_guarded_ones_asked(
    store: Store, permission: str, plain: str, guarded: str
) -> None:
    gate = Gate(store)

    def use(name: str, always: str) -> Need:
        return Need(permission=permission, patterns=(name,), always=(always,))

    task, secret = ask(gate, use(plain, "*")), ask(gate, use(guarded, "*"))
    reply(
        gate, next(each for each in await waiting(store, 2) if each.patterns == [plain]), "always"
    )
    await task
    assert not await gate.authorize([use("b.txt", "*")], "ses_a", TOOL, ASK)
    assert not secret.done(), "what is guarded waits for its own answer"
    reply(gate, (await waiting(store, 1))[0], "always")
    await secret
    again = ask(gate, use(guarded, guarded))
    reply(gate, (await waiting(store, 1))[0], "always")
    await again
    assert not await gate.authorize([use(guarded, guarded)], "ses_a", TOOL, ASK)


async def test_a_revoked_always_is_asked_again(store: Store) -> None:
    gate = Gate(store)
    task = ask(gate, need("ls", always=LS))
    reply(gate, (await waiting(store, 1))[0], "always")
    await task
    (grant,) = store.permissions.list_all_grants()
    assert (grant.directory, grant.session_id, grant.patterns) == ("/w", "ses_a", ["ls *"])
    store.permissions.revoke([grant.id])
    again = ask(gate, need("ls", always=LS))
    assert reply(gate, (await waiting(store, 1))[0], "once")
    await again


async def test_every_decision_is_stored_with_its_reason(store: Store) -> None:
    gate = Gate(store)
    allowing, denying = rule("*", "allow"), rule("rm *", "deny")
    await gate.authorize([need("ls")], "ses_a", TOOL, rules(allowing))
    with pytest.raises(Denied):
        await gate.authorize([need("ls", "rm x")], "ses_a", TOOL, rules(allowing, denying))
    await gate.authorize(
        [need("make")], "ses_a", TOOL, rules(rule("*", "ask"), approves_questions=True)
    )
    answers: list[tuple[Reply, str | None]] = [
        ("once", None), ("once", AUTO_MESSAGE), ("always", None), ("reject", "no"), ("reject", NOBODY_MESSAGE),
    ]  # fmt: skip
    for answer, message in answers:
        task = ask(gate, need("ls a", always=LS))
        reply(gate, (await waiting(store, 1))[0], answer, message)
        await asyncio.gather(task, return_exceptions=True)
        for grant in store.permissions.list_all_grants():
            await gate.authorize([need("ls b", always=LS)], "ses_a", TOOL, ASK)
            store.permissions.revoke([grant.id])
    found = store.permissions.list_decisions()
    assert [(each.action, each.by.split(" per_")[0]) for each in found] == [
        ("allow", "rule"),
        ("deny", "rule"),
        ("allow", "profile yolo"),
        ("allow", "person, once"),
        ("allow", "--auto"),
        ("allow", "person, always"),
        ("allow", "grant"),
        ("deny", "person, reject"),
        ("deny", "nobody"),
    ]
    assert (found[1].patterns, found[1].rule, found[1].origin, found[1].call) == (
        ["rm x"],
        denying,
        "built-in",
        TOOL,
    )
    assert store.permissions.list_decisions("ses_b") == []
    assert len(store.permissions.list_decisions(denied=True)) == 3
    assert store.permissions.list_decisions(limit=1) == found[-1:]


async def test_only_the_newest_decisions_are_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(permission_records, "STORE_DECISIONS", replace(STORE_DECISIONS, value=50))
    for number in range(200):
        await Gate(store).authorize([need(str(number))], "ses_a", TOOL, rules(rule("*", "allow")))
    assert [each.patterns for each in store.permissions.list_decisions()] == [
        [str(number)] for number in range(150, 200)
    ]


async def test_always_settles_the_others_that_it_covers(store: Store) -> None:
    gate = Gate(store)
    covered = [
        ask(gate, need(text, always=LS), session_id)
        for text, session_id in (("ls", "ses_a"), ("ls b", "ses_a"))
    ]
    covered.append(ask(gate, need("ls c", always=LS), "ses_child"))
    others = [
        ask(gate, need("ls b", "rm x", always=LS)),
        ask(gate, need("ls", always=LS), "ses_b"),
        ask(gate, need("ls", possible=(ANY_TEXT,), always=LS)),
        ask(gate, need("ls > x")),
    ]
    pending = await waiting(store, 7)
    first = next(
        request
        for request in pending
        if request.patterns == ["ls"] and request.session_id == "ses_a"
    )
    reply(gate, first, "always")
    await asyncio.gather(*covered)
    assert len(store.list_pending_permissions()) == 4
    assert not any(task.done() for task in others)
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    assert store.list_pending_permissions() == []


async def test_a_rejection_rejects_the_others_of_the_session(store: Store) -> None:
    gate = Gate(store)
    mine = [ask(gate, need("a")), ask(gate, need("b"))]
    other = ask(gate, need("c"), "ses_b")
    await waiting(store, 3)
    reply(gate, store.list_pending_permissions("ses_a")[0], "reject")
    outcomes = await asyncio.gather(*mine, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Rejected, Rejected]
    reply(gate, (await waiting(store, 1))[0], "once")
    await other


async def test_a_rejection_with_words_rejects_only_its_own(store: Store) -> None:
    gate = Gate(store)
    first, second = ask(gate, need("a")), ask(gate, need("b"))
    pending = await waiting(store, 2)
    reply(gate, next(r for r in pending if r.patterns == ["a"]), "reject", "use make")
    with pytest.raises(Rejected, match="use make") as raised:
        await first
    assert raised.value.message == "use make"
    assert not second.done()
    reply(gate, store.list_pending_permissions()[0], "once")
    await second


async def test_a_cancelled_wait_withdraws_its_question_alone(store: Store) -> None:
    gate = Gate(store)
    first, second = ask(gate, need("a")), ask(gate, need("b"))
    await waiting(store, 2)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    (left,) = store.list_pending_permissions()
    assert left.patterns == ["b"]
    reply(gate, left, "once")
    await second


async def test_a_second_answer_changes_nothing(store: Store) -> None:
    gate = Gate(store)
    task = ask(gate, need("a", always=("*",)))
    (request,) = await waiting(store, 1)
    assert reply(gate, request, "once")
    assert not reply(gate, request, "always")
    await task
    assert store.permissions.list_all_grants() == []


async def test_an_answer_given_before_the_question_is_followed_is_not_missed(store: Store) -> None:
    gate = Gate(store)
    task = ask(gate, need("a"))
    await asyncio.sleep(0)
    reply(gate, store.list_pending_permissions()[0], "once")
    await asyncio.wait_for(task, 30)


async def test_deleting_the_session_ends_the_wait(store: Store) -> None:
    task = ask(Gate(store), need("a"))
    await waiting(store, 1)
    info = session("ses_a")
    store.append(make_session_deleted(info))
    with pytest.raises(Rejected):
        await asyncio.wait_for(task, 30)


async def test_nothing_is_left_running_after_many_questions(store: Store) -> None:
    gate = Gate(store)
    for _ in range(20):
        tasks = [ask(gate, need("a")), ask(gate, need("b"))]
        reply(gate, (await waiting(store, 2))[0], "reject")
        await asyncio.gather(*tasks, return_exceptions=True)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert store.list_pending_permissions() == []


ANSWER = """
import sys
from pathlib import Path
from codeloop.permission.questions import settle_question
from codeloop.schema.event import PermissionAnswer
from codeloop.schema.wire import replace
from codeloop.store import permission_records
from codeloop.store.permission_records import WORKDIR_KEY
from codeloop.store.store import Store

store = Store(Path(sys.argv[1]))
(request,) = store.list_pending_permissions()
input()
answer = PermissionAnswer(session_id=request.session_id, request_id=request.id, reply="always")
print(settle_question(store, answer), flush=True)
"""


async def test_another_process_answers(store: Store) -> None:
    gate = Gate(store)
    task = ask(gate, need("ls", always=("ls *",)))
    await waiting(store, 1)
    child = subprocess.Popen(
        [sys.executable, "-c", ANSWER, str(store.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    out, _ = await asyncio.to_thread(child.communicate, "\n")
    await asyncio.wait_for(task, 60)
    assert out.strip() == "True"
    await gate.authorize([need("ls x", always=("ls *",))], "ses_a", TOOL, ASK)


async def test_clients_see_the_question_and_its_answer(store: Store) -> None:
    gate = Gate(store)
    seq = store.read_last_seq()
    task = ask(gate, need("a"))
    reply(gate, (await waiting(store, 1))[0], "once")
    await task
    events = [stamped.event for stamped in store.outbox.read_events(seq)]
    assert [type(event) for event in events] == [PermissionAsked, PermissionReplied]


async def test_what_is_asked_once_is_free_in_that_session_for_what_a_person_allowed(
    store: Store,
) -> None:
    gate = Gate(store)
    guarded = rules(rule("*", "allow", "edit"), rule("<protected>", "ask", "edit"))

    def change(name: str) -> Need:
        return Need(permission="edit", patterns=(name,), always=(name,), once=True)

    async def passes(
        wanted: Need, session_id: str, given: CallRules, message: str | None = None
    ) -> bool:
        """Return whether a call passed without a question; one that is asked is allowed once."""
        call = asyncio.create_task(gate.authorize([wanted], session_id, TOOL, given))
        while not call.done() and not store.list_pending_permissions(session_id):
            await asyncio.sleep(0.002)
        asked = store.list_pending_permissions(session_id)
        for request in asked:
            settle_question(
                gate.store,
                PermissionAnswer(
                    session_id=session_id, request_id=request.id, reply="once", message=message
                ),
            )
        await call
        return not asked

    assert not await passes(change("AGENTS.md"), "ses_a", guarded, AUTO_MESSAGE)
    assert not await passes(change("AGENTS.md"), "ses_a", guarded)
    assert await passes(change("AGENTS.md"), "ses_a", guarded)
    assert await passes(change("AGENTS.md"), "ses_child", guarded)
    assert not await passes(change("CLAUDE.md"), "ses_a", guarded)
    assert not await passes(change("AGENTS.md"), "ses_b", guarded)
    every = rules(rule("*", "ask", "edit"))  # the profile ask: each edit is asked about
    assert not await passes(change("CLAUDE.md"), "ses_b", every)
    assert not await passes(change("CLAUDE.md"), "ses_b", every)
    kept = store.permissions.list_all_grants()
    assert [(grant.session_id, grant.directory, grant.patterns) for grant in kept] == [
        ("ses_a", "", ["AGENTS.md"]),
        ("ses_a", "", ["CLAUDE.md"]),
        ("ses_b", "", ["AGENTS.md"]),
    ]
