"""Explains the permission decision about a tool call, for `codeloop debug permission`.

The tool itself runs up to its questions for permission,
so that the explanation can't differ from a real call.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
from msgspec import Struct

from codeloop.agent.calls.call_context import CallContext
from codeloop.agent.calls.call_rules import find_profile, make_call_rules
from codeloop.agent.engine import Engine
from codeloop.app.project import Project
from codeloop.kit.remove_tree import temporary_folder
from codeloop.permission.gate import Gate
from codeloop.permission.rules import judge_need
from codeloop.schema.api.agents import Agent
from codeloop.schema.event import make_session_created
from codeloop.schema.ids import now_ms
from codeloop.schema.message import Session, SessionTime
from codeloop.schema.part import ToolPart, ToolStatePending
from codeloop.schema.permission import (
    PROFILE_KEY,
    Action,
    Need,
    PermissionRequest,
    PermissionRule,
    Profile,
    Trait,
)
from codeloop.schema.wire import JSON, Wire, replace
from codeloop.store.permission_records import WORKDIR_KEY
from codeloop.store.store import Store
from codeloop.tool.builtin.shell.sandbox_preview import SandboxPreview, preview_sandbox
from codeloop.tool.tool import ToolFailure

_NEW_SESSION_ID = "ses_new"


class ExplainedNeed(Wire):
    """A need for permission and the decision about it.

    `origin`: where the deciding `rule` is written. `always`: the patterns that the answer "always"
    would allow; the fields below it are those of the `Need`.
    """

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
    """The needs of a call, in the order in which the tool states them.

    `failure`: the error with which the tool itself refuses the call, or "". `sandbox`: the limits
    within which a shell line would run if it is allowed; None for other calls.
    """

    profile: Profile
    agent: str
    needs: list[ExplainedNeed]
    failure: str = ""
    sandbox: SandboxPreview | None = None


class Situation(Struct, frozen=True):
    """The session of a call: a new one, or a copy of `session_id`.
    `profile` replaces the session's own profile.
    """

    agent: str
    session_id: str | None = None
    profile: Profile | None = None


async def explain_call(
    project: Project, situation: Situation, tool: str, arguments: JSON
) -> Explanation:
    """Return the decisions of the gate about a call.
    The tool is stopped before it acts, and nobody is asked.
    """
    async with _open_scratch_engine(project, situation) as (engine, session_id):
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
        context = _DryRunContext(engine, agent, part, engine.toolbox.tools_by_name[tool].permission)
        failure = ""
        try:
            await tool_to_explain.run(msgspec.convert(arguments, tool_to_explain.params), context)
        except _AllNeedsStated:
            pass
        except ToolFailure as error:
            failure = str(error)
        rules = make_call_rules(engine, session_id, agent)
        needs = [_explain_need(engine, session_id, agent, need) for need in context.needs]
        # A call with a denied need fails before any question is asked.
        if any(need.action == "deny" for need in needs):
            needs = [need for need in needs if need.action != "ask"]
        if rules.approves_questions:
            needs = [
                replace(need, action="allow") if need.action == "ask" else need for need in needs
            ]
        sandbox = None
        if tool == "bash":
            directory = engine.workspace.resolve(
                arguments.get("workdir") or ".", engine.workspace.directory
            ).path
            sandbox = await preview_sandbox(
                arguments["command"], directory, session_id, engine.workspace
            )
        return Explanation(
            profile=find_profile(engine, session_id),
            agent=agent.name,
            needs=needs,
            failure=failure,
            sandbox=sandbox,
        )


class _AllNeedsStated(Exception):
    """The tool has stated all its needs for permission; next it would act."""


class _DryRunContext(CallContext):
    """Collects the needs of a tool, and stops it when it needs `last_permission`: its
    own name in permission rules.

    Tools state this need last: a file outside the project, for example,
    is asked about before it is read.
    """

    def __init__(self, engine: Engine, agent: Agent, part: ToolPart, last_permission: str) -> None:
        super().__init__(engine, agent, part)
        self.needs: list[Need] = []
        self._last_permission = last_permission

    async def ask(self, *needs: Need) -> bool:
        """Record the needs; nobody is asked. Raises _AllNeedsStated at the last."""
        self.needs += needs
        if any(need.permission == self._last_permission for need in needs):
            raise _AllNeedsStated
        return False


def _explain_need(engine: Engine, session_id: str, agent: Agent, need: Need) -> ExplainedNeed:
    grants = [
        PermissionRule(permission=grant.permission, pattern=pattern, action="allow")
        for grant in engine.gate.list_grants(session_id, need)
        for pattern in grant.patterns
    ]
    verdict, origin = judge_need(
        need, make_call_rules(engine, session_id, agent).lists, tuple(grants)
    )
    is_granted = (
        verdict.action == "allow" and verdict.rule is not None and verdict.rule.action == "ask"
    )
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
async def _open_scratch_engine(
    project: Project, situation: Situation
) -> AsyncGenerator[tuple[Engine, str]]:
    """Yield an engine with a temporary store, and the id of the session in it.

    The store has copies of the session, of its parents, and of the grants that apply to them. So
    nothing that a tool stores before it is stopped reaches the real store.
    """
    project_root, project_store = project.settings.project_root, project.store
    sessions = (
        list(project_store.walk_ancestors(situation.session_id)) if situation.session_id else []
    )
    session = (
        sessions[0]
        if sessions
        else _make_session(project_root.directory_name, project_root.project_id)
    )
    if situation.profile is not None:
        session = replace(
            session, metadata={**(session.metadata or {}), PROFILE_KEY: situation.profile}
        )
    ids = {each.id for each in sessions}
    grants = [
        grant
        for grant in project_store.permissions.list_all_grants()
        if grant.directory == session.directory or (not grant.directory and grant.session_id in ids)
    ]
    with temporary_folder() as folder:
        store = Store(folder / "codeloop.db")
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
        id=_NEW_SESSION_ID,
        slug="new",
        project_id=project_id,
        directory=directory,
        title="",
        version="",
        time=SessionTime(created=now, updated=now),
    )
