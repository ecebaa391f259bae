"""Explains what would be decided about a call, by running the tools up to their permission questions."""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.agent.call_context import CallContext
from codeloop.agent.engine import Engine
from codeloop.app.project import Project
from codeloop.permission.gate import Gate
from codeloop.permission.rules import judge_need
from codeloop.schema.agent import Agent
from codeloop.schema.event import make_session_created
from codeloop.schema.ids import now_ms
from codeloop.schema.message import Session, SessionTime
from codeloop.schema.part import ToolPart, ToolStatePending
from codeloop.schema.permission import PROFILE_KEY, Action, Need, PermissionRequest, PermissionRule, Profile, Trait
from codeloop.schema.wire import JSON, Wire, replace
from codeloop.store.permission_records import WORKDIR_KEY
from codeloop.store.store import Store
from codeloop.store.subagent_state import walk_ancestors
from codeloop.tool.builtin.shell.sandbox_preview import SandboxPreview, preview_sandbox
from codeloop.tool.tool import ToolFailure

NEW = "ses_new"


class ExplainedNeed(Wire):
    """A need and its verdict: the rule, where it is written, and what an "always" would remember."""

    permission: str
    patterns: list[str]
    action: Action
    origin: str
    rule: PermissionRule | None = None
    always: list[str] = []
    traits: list[Trait] = []
    possible: list[str] = []
    unproven: str = ""
    remote: list[str] = []


class Explanation(Wire):
    """The needs of a call in the order in which they come up. `failure`: why the tool would refuse it by itself.

    `sandbox`: what a shell line may do once it is allowed; None for other calls.
    """

    profile: Profile
    agent: str
    needs: list[ExplainedNeed]
    failure: str = ""
    sandbox: SandboxPreview | None = None


class Situation(Struct, frozen=True):
    """The situation of a call: a new session, or a copy of `session_id`, under its own profile or `profile`."""

    agent: str
    session_id: str | None = None
    profile: Profile | None = None


async def explain(project: Project, situation: Situation, tool: str, arguments: JSON) -> Explanation:
    """Decide a call as the gate would, without running, asking or storing anything."""
    async with _stand_in(project, situation) as (engine, session_id):
        agent = engine.get_agent(situation.agent)
        part = ToolPart(
            id="prt_new",
            session_id=session_id,
            message_id="msg_new",
            call_id="call_new",
            tool=tool,
            state=ToolStatePending(input=arguments, raw=""),
        )
        tool_to_explain = engine.toolbox.tools_by_name[tool].implementation
        ctx = _DryRun(engine, agent, part, engine.toolbox.tools_by_name[tool].permission)
        failure = ""
        try:
            await tool_to_explain.run(msgspec.convert(arguments, tool_to_explain.params), ctx)
        except _Explained:
            pass
        except ToolFailure as error:
            failure = str(error)
        rules = engine.make_call_rules(session_id, agent)
        needs = [_explain_need(engine, session_id, agent, need) for need in ctx.needs]
        if any(need.action == "deny" for need in needs):  # then nobody is asked about the others
            needs = [need for need in needs if need.action != "ask"]
        if rules.approves_questions:
            needs = [replace(need, action="allow") if need.action == "ask" else need for need in needs]
        sandbox = None
        if tool == "bash":
            directory = engine.workspace.resolve(arguments.get("workdir") or ".", engine.workspace.directory).path
            sandbox = await preview_sandbox(arguments["command"], directory, session_id, engine.workspace)
        return Explanation(
            profile=engine.find_profile(session_id), agent=agent.name, needs=needs, failure=failure, sandbox=sandbox
        )


class _Explained(Exception):
    """The tool has stated all its needs; next it would act."""


class _DryRun(CallContext):
    """Collects what a tool would ask for, and stops it at the permission that it is named by."""

    def __init__(self, engine: Engine, agent: Agent, part: ToolPart, last: str) -> None:
        super().__init__(engine, agent, part)
        self.needs: list[Need] = []
        self._last = last

    async def ask(self, *needs: Need) -> bool:
        """Record the needs; nobody is asked. Raises _Explained at the last."""
        self.needs += needs
        if any(need.permission == self._last for need in needs):
            raise _Explained
        return False


def _explain_need(engine: Engine, session_id: str, agent: Agent, need: Need) -> ExplainedNeed:
    grants = [
        PermissionRule(permission=grant.permission, pattern=pattern, action="allow")
        for grant in engine.gate.list_grants(session_id, need)
        for pattern in grant.patterns
    ]
    verdict, origin = judge_need(need, engine.make_call_rules(session_id, agent).lists, tuple(grants))
    is_granted = verdict.action == "allow" and verdict.rule is not None and verdict.rule.action == "ask"
    return ExplainedNeed(
        permission=need.permission,
        patterns=list(need.patterns),
        action=verdict.action,
        origin="an earlier always" if is_granted else origin,
        rule=verdict.rule,
        always=list(need.always) if verdict.action == "ask" else [],
        traits=list(need.traits),
        possible=list(need.possible),
        unproven=need.unproven,
        remote=list(need.remote),
    )


@asynccontextmanager
async def _stand_in(project: Project, situation: Situation) -> AsyncGenerator[tuple[Engine, str]]:
    """Yield an engine over a store of its own, with copies of the session, those above it and what holds for it."""
    project_root, project_store = project.settings.project_root, project.store
    sessions = list(walk_ancestors(project_store, situation.session_id)) if situation.session_id else []
    session = sessions[0] if sessions else _make_session(str(project_root.directory), project_root.project_id)
    if situation.profile is not None:
        session = replace(session, metadata={**(session.metadata or {}), PROFILE_KEY: situation.profile})
    ids = {each.id for each in sessions}
    grants = [
        grant
        for grant in project_store.permissions.list_all_grants()
        if grant.directory == session.directory or (not grant.directory and grant.session_id in ids)
    ]
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "codeloop.db")
        try:
            store.append(*(make_session_created(each) for each in (session, *sessions[1:])))
            for grant in grants:
                store.permissions.store_always_answer(
                    PermissionRequest(
                        id=grant.id,
                        session_id=session.id,
                        permission=grant.permission,
                        patterns=[],
                        metadata={WORKDIR_KEY: grant.place} if grant.place else {},
                        always=grant.patterns,
                    )
                )
            yield replace(project.engine, store=store, gate=Gate(store)), session.id
        finally:
            store.close()


def _make_session(directory: str, project_id: str) -> Session:
    now = now_ms()
    return Session(
        id=NEW,
        slug="new",
        project_id=project_id,
        directory=directory,
        title="",
        version="",
        time=SessionTime(created=now, updated=now),
    )
