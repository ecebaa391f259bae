"""Whatever the agents, rules and profiles: a session below another one, or a copy of one,
is never allowed more.
"""

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.agent.calls.call_rules import CEILINGS_KEY, Ceiling, make_call_rules, set_ceilings
from codeloop.agent.subagent.spawn import run_subagent
from codeloop.app.handlers.session.fork import fork_session
from codeloop.app.handlers.session.session import update_session
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.permission.rules import judge_need
from codeloop.schema.api.session_requests import ForkSession, UpdateSession
from codeloop.schema.event import make_message_updated, make_session_created
from codeloop.schema.ids import new_id
from codeloop.schema.message import AssistantMessage, Session, SessionModel
from codeloop.schema.part import ToolPart, ToolStart, ToolStateRunning
from codeloop.schema.permission import PROFILE_KEY, PROFILES, Need, PermissionRule, Trait
from codeloop.schema.wire import replace
from codeloop.tool.tool import Subtask
from tests.store.states import updated
from tests.support.scripted_project import ScriptedProject, open_scripted_project

STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
PERMISSIONS = ("bash", "edit", "read", "webfetch", "task", "*")
PATTERNS = ("*", "git *", "rm *", "src/*", "general", "*.md", ".env")
TEXTS = (
    "git status",
    "git push",
    "rm x",
    "src/a.py",
    "README.md",
    ".env",
    ".codeloop/x.md",
    "general",
    "ls",
)
AGENTS = ("build", "plan", "general", "explore", "one", "two", "three")
SEEDS = [*range(16), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(16, 60))]


def some_rules(chance: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for permission in chance.sample(PERMISSIONS, chance.randrange(4)):
        patterns = chance.sample(PATTERNS, chance.randrange(1, 3))
        found[permission] = {pattern: chance.choice(tuple(STRICTNESS)) for pattern in patterns}
    return found


def listed(rules: dict[str, Any]) -> list[PermissionRule]:
    return [
        PermissionRule(permission=permission, pattern=pattern, action=action)
        for permission, patterns in rules.items()
        for pattern, action in patterns.items()
    ]


def some_need(chance: random.Random) -> Need:
    text = chance.choice(TEXTS)
    traits: tuple[Trait, ...] = tuple(
        chance.sample(("read-only", "sandboxed"), chance.randrange(3))
    )
    return Need(permission=chance.choice(PERMISSIONS[:-1]), patterns=(text,), traits=traits)


def verdict(it: ScriptedProject, session: Session, need: Need) -> int:
    """Return how strict the decision about a session's call is;
    what a profile answers by itself is not a question.
    """
    engine = it.project.engine
    rules = make_call_rules(engine, session.id, engine.get_agent(session.agent or "build"))
    action = judge_need(need, rules.lists)[0].action
    return STRICTNESS["allow" if action == "ask" and rules.approves_questions else action]


def made(it: ScriptedProject, chance: random.Random, parent: Session | None) -> Session:
    session = replace(
        it.project.store.get_session(it.session_id),
        id=new_id("ses"),
        parent_id=parent.id if parent is not None else None,
        agent=chance.choice(AGENTS),
        permission=listed(some_rules(chance)),
        metadata={PROFILE_KEY: chance.choice(PROFILES)} if chance.random() < 0.3 else None,
    )
    it.project.store.append(make_session_created(session))
    return session


@pytest.mark.parametrize("seed", SEEDS)
async def test_no_session_is_allowed_more_than_those_above_it(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    agents = {name: {"mode": "all", "permission": some_rules(chance)} for name in AGENTS[2:]}
    settings: dict[str, Any] = {
        "agent": agents,
        "permission": some_rules(chance),
        "profile": chance.choice(PROFILES),
    }
    async with open_scripted_project(tmp_path, [], **settings) as it:
        line: list[Session] = []
        for _ in range(4):
            line.append(made(it, chance, line[-1] if line else None))
        copy = await fork_session(it.project, ForkSession(session_id=line[-1].id))
        again = await fork_session(it.project, ForkSession(session_id=copy.id))
        await update_session(
            it.project, UpdateSession(session_id=again.id, metadata={"mine": True})
        )
        # The person changes the agent.
        other = replace(it.project.store.get_session(again.id), agent=chance.choice(AGENTS))
        for _ in range(40):
            need = some_need(chance)
            verdicts = [verdict(it, each, need) for each in line]
            assert verdicts == sorted(verdicts), need
            assert verdict(it, copy, need) >= verdicts[-1], need
            assert verdict(it, again, need) >= verdicts[-1], need
            assert verdict(it, other, need) >= verdicts[-2], need


async def test_the_agent_that_called_holds_whatever_the_session_becomes(tmp_path: Path) -> None:
    """A background subagent of `plan` is still its child when the person
    has gone on with `build`.
    """
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="Done.")] * 4) as it:
        store = it.project.store
        model = SessionModel(id="scripted", provider_id="test")
        store.append(updated(replace(store.get_session(it.session_id), agent="plan", model=model)))
        await it.prompt(agent="plan")
        planned = next(e.info for e in it.view().entries if isinstance(e.info, AssistantMessage))
        done = await run_subagent(
            it.project.engine, call_of(it, planned.id), task(), lambda _: None
        )
        child = store.get_session(done.session_id)
        edit = Need(permission="edit", patterns=("src/a.py",))
        assert verdict(it, child, edit) == 2
        store.append(updated(replace(store.get_session(it.session_id), agent="build")))
        assert verdict(it, child, edit) == 2
        built = replace(planned, id=new_id("msg"), agent="build")
        store.append(make_message_updated(built))
        resumed = await run_subagent(
            it.project.engine, call_of(it, built.id), task(child.id), lambda _: None
        )
        assert resumed.session_id == child.id
        assert verdict(it, store.get_session(child.id), edit) == 0


def task(session_id: str | None = None) -> Subtask:
    return Subtask(agent="general", description="d", prompt="p", session_id=session_id)


def call_of(it: ScriptedProject, message_id: str) -> ToolPart:
    state = ToolStateRunning(input={}, time=ToolStart(start=1))
    own = it.session_id
    return ToolPart(
        id=new_id("prt"),
        session_id=own,
        message_id=message_id,
        call_id="c",
        tool="task",
        state=state,
    )


async def test_below_an_agent_that_is_gone_nothing_is_allowed(tmp_path: Path) -> None:
    careful = {"careful": {"mode": "all", "permission": {"edit": "deny"}}}
    async with open_scripted_project(tmp_path, [], agent=careful) as it:
        chance = random.Random(1)
        parent = replace(made(it, chance, None), agent="careful", permission=None, metadata=None)
        child = replace(made(it, chance, parent), agent="general", permission=None, metadata=None)
        it.project.store.append(updated(parent), updated(child))
        it.project.engine.agents.pop("careful")
        assert verdict(it, child, Need(permission="edit", patterns=("a",))) == 2


@pytest.mark.parametrize("kept", [5, [{"agent": 5}], [{"profile": "loose"}]])
async def test_ceilings_that_make_no_sense_allow_nothing(tmp_path: Path, kept: Any) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        session = replace(
            it.project.store.get_session(it.session_id), metadata={CEILINGS_KEY: kept}
        )
        it.project.store.append(updated(session))
        assert verdict(it, session, Need(permission="read", patterns=("a",))) == 2


def test_ceilings_are_kept_beside_what_else_there_is() -> None:
    assert set_ceilings({"a": 1, CEILINGS_KEY: []}, ()) == {"a": 1}
    assert set_ceilings(None, ()) is None
    kept = set_ceilings({"a": 1}, (Ceiling(agent="plan"),))
    assert kept == {"a": 1, CEILINGS_KEY: [msgspec.to_builtins(Ceiling(agent="plan"))]}
