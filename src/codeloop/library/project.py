"""An open project, in this process or on a server: creates, lists and resumes sessions."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar, Unpack, cast, overload

from codeloop.client.client import Client
from codeloop.library.errors import TurnFailed
from codeloop.library.events import Answer
from codeloop.library.functions import list_read_only_warnings, make_function_tools
from codeloop.library.options import Action, Rules, SessionOptions, TurnLimits, check_options
from codeloop.library.session import (
    AgentSession,
    Files,
    SessionTarget,
    check_prompt,
    parse_model_option,
)
from codeloop.schema.api.project import PathInfo
from codeloop.schema.api.session_requests import (
    SESSION_CREATE,
    SESSION_GET,
    SESSION_LIST,
    SESSION_UPDATE,
    CreateSession,
    ListSessions,
    SessionId,
    UpdateSession,
)
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.message import Session, SessionModel
from codeloop.schema.permission import PROFILE_KEY, PROFILES, PermissionRule, parse_profile

T = TypeVar("T")
# The newest sessions of the project; those of other directories of it are filtered afterwards.
_MAX_SESSIONS = 1_000


class AgentProject:
    """A directory that the agent works in, as returned by `codeloop.open` and `codeloop.connect`.

    Its `client` has every operation of the HTTP API, also those that this class has no method for.
    """

    def __init__(
        self,
        session_target: SessionTarget,
        path: PathInfo,
        warnings: tuple[str, ...],
        options: SessionOptions,
    ) -> None:
        self.directory = path.directory
        """The absolute path of the directory."""
        self.warnings = (*warnings, *list_read_only_warnings(options))
        """Warnings about the configuration and the options, such as what was ignored, and why."""
        self._worktree = path.worktree
        self._target = session_target
        self._options = options

    def __repr__(self) -> str:
        """Return the class and the directory."""
        return f"<AgentProject {self.directory}>"

    @property
    def client(self) -> Client:
        """The client of the project, as the command line uses it: `call(operation,
        arguments)` and `follow()`.
        """
        return self._target.client

    async def session(
        self,
        session_id: str | None = None,
        *,
        title: str | None = None,
        **options: Unpack[SessionOptions],
    ) -> AgentSession:
        """Start a session, or resume the one with this id, whichever process created it.

        Options replace those of the project, but a resumed session keeps its own profile and rules
        unless they are given here. Raises CodeloopError if there is no such session or, for a new
        one, no such agent or model.
        """
        options = check_options(options, SessionOptions)
        session_options: SessionOptions = {**self._options, **options}
        # Refuses an unusable function before a session is created.
        make_function_tools(session_options.get("tools", ()))
        if session_id is None:
            return AgentSession(
                self._target, await self._create(title, session_options), session_options
            )
        session = await self.client.call(SESSION_GET, SessionId(session_id=session_id))
        # Sessions of other directories of the repository can be resumed here;
        # `/`: the directory is in no repository.
        if session.directory != self.directory and (
            self._worktree == "/" or session.root != self._worktree
        ):
            raise UsageProblem(
                f"Session {session_id} belongs to {session.directory}: open that directory."
            )
        changes = UpdateSession(
            session_id=session.id,
            title=title,
            metadata={**(session.metadata or {}), **_make_profile_metadata(options)}
            if "profile" in options
            else None,
            permission=_convert_rules(options["permission"]) if "permission" in options else None,
        )
        if title or changes.metadata is not None or changes.permission is not None:
            session = await self.client.call(SESSION_UPDATE, changes)
        return AgentSession(self._target, session, session_options)

    async def last(self, **options: Unpack[SessionOptions]) -> AgentSession:
        """Resume the session of this directory that was changed last.
        Raises CodeloopError if there is none.
        """
        sessions = await self._list_sessions()
        if not sessions:
            raise UsageProblem(
                f"There is no session in {self.directory} yet. project.session() starts one."
            )
        return await self.session(sessions[0].id, **options)

    async def sessions(self, limit: int = 100) -> list[AgentSession]:
        """Return the sessions of this directory, the last changed first, at most `limit`."""
        return [
            AgentSession(self._target, each, self._options)
            for each in (await self._list_sessions())[:limit]
        ]

    @overload
    async def ask(
        self, prompt: str, *, files: Files = (), limits: TurnLimits | None = None
    ) -> Answer[None]: ...
    @overload
    async def ask(
        self, prompt: str, *, result: type[T], files: Files = (), limits: TurnLimits | None = None
    ) -> Answer[T]: ...
    async def ask(
        self,
        prompt: str,
        *,
        result: type[Any] | None = None,
        files: Files = (),
        limits: TurnLimits | None = None,
    ) -> Answer[Any]:
        """Send a prompt in a new session and return the answer; see `AgentSession.ask`."""
        check_prompt(prompt)
        session = await self.session()
        try:
            if result is None:
                return await session.ask(prompt, files=files, limits=limits)
            return await session.ask(
                prompt, result=cast("type[object]", result), files=files, limits=limits
            )
        except TurnFailed:
            raise
        # If not even the prompt was stored, the empty session is deleted.
        except CodeloopError:
            with suppress(CodeloopError):
                if not await session.messages():
                    await session.delete()
            raise

    async def _create(self, title: str | None, options: SessionOptions) -> Session:
        model = parse_model_option(options.get("model"))
        rules = options.get("permission")
        create_session = CreateSession(
            title=title,
            agent=options.get("agent"),
            model=None
            if model is None
            else SessionModel(id=model.model_id, provider_id=model.provider_id),
            metadata=_make_profile_metadata(options) or None,
            permission=None if rules is None else _convert_rules(rules),
        )
        return await self.client.call(SESSION_CREATE, create_session)

    async def _list_sessions(self) -> list[Session]:
        list_sessions = ListSessions(scope="project", roots=True, limit=_MAX_SESSIONS)
        sessions = await self.client.call(SESSION_LIST, list_sessions)
        return [
            each for each in sessions if each.directory == self.directory and not each.time.archived
        ]


def _make_profile_metadata(options: SessionOptions) -> dict[str, str]:
    """Return the metadata that stores a session's profile.
    Raises UsageProblem if there is no such profile.
    """
    profile = options.get("profile")
    if profile is None:
        return {}
    if (known_profile := parse_profile(profile)) is None:
        raise UsageProblem(f"There is no profile {profile!r}. There are: {', '.join(PROFILES)}.")
    return {PROFILE_KEY: known_profile}


def _convert_rules(rules: Rules) -> list[PermissionRule]:
    """Return rules in the form in which sessions store them.
    Raises UsageProblem for an unknown action.
    """
    rule_list: list[PermissionRule] = []
    for permission, value in rules.items():
        patterns: Mapping[str, Action] = {"*": value} if isinstance(value, str) else value
        for pattern, action in patterns.items():
            if action not in {"allow", "ask", "deny"}:
                raise UsageProblem(
                    f"{permission} {pattern!r} is {action!r}: give `allow`, `ask` or `deny`."
                )
            rule_list.append(PermissionRule(permission=permission, pattern=pattern, action=action))
    return rule_list
