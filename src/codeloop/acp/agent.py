"""`EditorAgent`: carries out the methods of the protocol that an editor calls."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from codeloop import __version__
from codeloop.acp import params
from codeloop.acp.connected_editor import ConnectedEditor
from codeloop.acp.connection import INVALID_PARAMS, METHOD_NOT_FOUND, EditorConnection, RpcError
from codeloop.acp.editor_buffers import EditorBuffers
from codeloop.acp.editor_session import EditorSession
from codeloop.acp.editor_sessions import EditorSessions, OpenClient
from codeloop.acp.options import MODE
from codeloop.acp.terminals.editor_terminals import EditorTerminals
from codeloop.acp.versions.version import ProtocolVersion
from codeloop.acp.versions.version1 import Version1
from codeloop.acp.workspace_roots import list_roots
from codeloop.client.wire.stdio_lines import open_stdio_lines
from codeloop.schema.api.providers import AUTH_REMOVE, CONFIG_PROVIDERS, ProviderId
from codeloop.schema.api.session_requests import (
    SESSION_CREATE,
    SESSION_DELETE,
    SESSION_EVERYTHING,
    SESSION_FORK,
    SESSION_LIST,
    CreateSession,
    ForkSession,
    ListAllSessions,
    ListSessions,
    SessionId,
)
from codeloop.schema.message import Session
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PROFILE_KEY
from codeloop.schema.wire import JSON, replace

DRAFT_VERSION = 2
"""The draft version of the protocol, used only with `--protocol 2`."""
_SESSIONS_PER_PAGE = 50
_MAX_LISTED_SESSIONS = 10_000
"""Sessions that a list has at most, over all pages."""


class AcpLaunch(Struct, frozen=True):
    """How to serve an editor, by the flags of `codeloop acp`.

    `profile`, `agent`, `variant`: of new sessions; None: the configured ones. `newest_version`:
    the newest version of the protocol to speak. `terminals`: the editor's terminals,
    if commands outside the sandbox run in them.
    """

    open_client: OpenClient
    buffers: EditorBuffers
    profile: str | None = None
    agent: str | None = None
    variant: str | None = None
    newest_version: int = 1
    terminals: EditorTerminals | None = None


async def serve_editor(launch: AcpLaunch) -> None:
    """Serve an editor over stdin and stdout until stdin ends, or this is cancelled."""
    async with open_stdio_lines() as lines:
        agent = EditorAgent(launch, lines.write)
        lines.start(agent.connection.receive)
        try:
            await agent.connection.closed.wait()
        finally:
            await agent.close()


class EditorAgent:
    """Carries out the editor's requests."""

    def __init__(self, launch: AcpLaunch, write: Callable[[bytes], None]) -> None:
        self.connection = EditorConnection(write, self.handle)
        self._launch = launch
        launch.buffers.connection = self.connection
        self._sessions = EditorSessions(self.connection, launch.open_client, launch.buffers)
        self._methods: dict[str, Callable[[Any], Awaitable[Any]]] = self._list_methods(1)

    async def handle(self, method: str, raw_params: Any) -> Any:
        """Carry out a method. Raises RpcError, CodeloopError."""
        handler = self._methods.get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"Unknown method {method}.")
        return await handler(raw_params)

    async def close(self) -> None:
        """Stop every session and cancel the running requests."""
        await self._sessions.close()
        await self.connection.close()

    async def _initialize(self, raw_params: Any) -> JSON:
        request = params.read_params(params.InitializeParams, raw_params)
        capabilities = request.client_capabilities or params.ClientCapabilities()
        version: ProtocolVersion = Version1(capabilities)
        # An editor that asks for a version that we don't know gets the newest one that we do.
        if min(request.protocol_version, self._launch.newest_version) >= DRAFT_VERSION:
            from codeloop.acp.versions.version2 import Version2, convert_capabilities

            version, capabilities = (
                Version2(),
                convert_capabilities(request.capabilities or params.DraftCapabilities()),
            )
        terminal_ids = (
            self._launch.terminals.terminal_ids
            if self._launch.terminals is not None
            else set[str]()
        )
        self._sessions.editor = ConnectedEditor(
            self.connection, version, capabilities, terminal_ids
        )
        self._methods = self._list_methods(version.number)
        self._launch.buffers.is_offered = (
            capabilities.fs.read_text_file and capabilities.fs.write_text_file
        )
        if self._launch.terminals is not None:
            self._launch.terminals.is_offered = capabilities.terminal
        # The editor runs this program in a terminal with these arguments: `codeloop acp --login`.
        sign_in: JSON = {
            "type": "terminal",
            "id": "login",
            "name": "Sign in to a model's service",
            "description": "Asks in a terminal which service to use, and for its key.",
            "args": ["--login"],
        }
        can_sign_in = capabilities.auth is not None and capabilities.auth.terminal
        info: JSON = {"name": "codeloop", "title": "codeloop", "version": __version__}
        return version.build_initialize_result(sign_in if can_sign_in else None, info)

    def _list_methods(self, version: int) -> dict[str, Callable[[Any], Awaitable[Any]]]:
        """Return the handlers of a protocol version's methods, by method name."""
        common: dict[str, Callable[[Any], Awaitable[Any]]] = {
            "initialize": self._initialize,
            "session/new": self._create_session,
            "session/resume": self._resume_session,
            "session/list": self._list_sessions,
            "session/delete": self._delete_session,
            "session/close": self._close_session,
            "session/prompt": self._prompt,
            "session/cancel": self._cancel_turn,
            "session/set_config_option": self._set_option,
        }
        if version == DRAFT_VERSION:
            return {**common, "auth/login": self._authenticate, "auth/logout": self._logout}
        return {
            **common,
            "authenticate": self._authenticate,
            "logout": self._logout,
            "session/load": self._load_session,
            "session/fork": self._fork_session,
            "session/set_mode": self._set_mode,
        }

    async def _authenticate(self, raw_params: Any) -> None:
        request = params.read_params(params.AuthenticateParams, raw_params)
        raise RpcError(
            INVALID_PARAMS, f"{request.method_id} is done in a terminal: `codeloop auth login`."
        )

    async def _logout(self, _raw_params: Any) -> None:
        """Remove all stored keys and sign-ins. Keys in environment variables stay."""
        client = await self._sessions.open_client(str(Path.cwd()))
        usable = await client.call(CONFIG_PROVIDERS, NoArguments())
        for provider in usable.providers:
            if provider.source == "api":
                await client.call(AUTH_REMOVE, ProviderId(provider_id=provider.id))
        await self._sessions.reload()

    async def _create_session(self, raw_params: Any) -> JSON:
        request = params.read_params(params.NewSessionParams, raw_params)
        client = await self._sessions.open_client(request.cwd)
        metadata = {PROFILE_KEY: self._launch.profile} if self._launch.profile else None
        create = CreateSession(metadata=metadata, agent=self._launch.agent)
        session = await client.call(SESSION_CREATE, create)
        editor_session = await self._sessions.open(client, session, request)
        choices, available = editor_session.choices, editor_session.available
        model = choices.resolve_model(session, available)
        if self._launch.variant and model is not None:
            choices.model = replace(model, variant=self._launch.variant)
        return {"sessionId": session.id, **editor_session.build_state()}

    async def _load_session(self, raw_params: Any) -> JSON:
        editor_session = await self._reopen_session(raw_params)
        await editor_session.replay()
        return editor_session.build_state()

    async def _resume_session(self, raw_params: Any) -> JSON:
        editor_session = await self._reopen_session(raw_params)
        replay = params.read_params(params.OpenSessionParams, raw_params).replay_from
        if replay is not None and replay.type != "start":
            raise RpcError(
                INVALID_PARAMS,
                f"A conversation is sent again from its start, not from {replay.type!r}.",
            )
        if replay is not None and self._sessions.editor.version.number == DRAFT_VERSION:
            await editor_session.replay()
        return editor_session.build_state()

    async def _reopen_session(self, raw_params: Any) -> EditorSession:
        request = params.read_params(params.OpenSessionParams, raw_params)
        client, session = await self._sessions.find(request.session_id, request.cwd)
        return await self._sessions.open(client, session, request)

    async def _fork_session(self, raw_params: Any) -> JSON:
        request = params.read_params(params.OpenSessionParams, raw_params)
        client, session = await self._sessions.find(request.session_id, request.cwd)
        copy = await client.call(SESSION_FORK, ForkSession(session_id=session.id))
        editor_session = await self._sessions.open(client, copy, request)
        return {"sessionId": copy.id, **editor_session.build_state()}

    async def _list_sessions(self, raw_params: Any) -> JSON:
        request = params.read_params(params.ListSessionsParams, raw_params)
        cursor = request.cursor or "0"
        if not cursor.isdecimal():
            raise RpcError(INVALID_PARAMS, f"{cursor!r} is not a cursor of this list.")
        start = int(cursor)
        client = await self._sessions.open_client(request.cwd or str(Path.cwd()))
        # Without a directory, the sessions of all projects are listed.
        if request.cwd is not None:
            sessions = await client.call(
                SESSION_LIST,
                ListSessions(directory=request.cwd, roots=True, limit=_MAX_LISTED_SESSIONS),
            )
        else:
            sessions = await client.call(
                SESSION_EVERYTHING, ListAllSessions(limit=_MAX_LISTED_SESSIONS)
            )
        # Subagents' sessions are shown within their parent's only.
        shown_sessions = [
            each for each in sessions if each.parent_id is None and not each.time.archived
        ]
        end = start + _SESSIONS_PER_PAGE
        page: JSON = {
            "sessions": [_describe_session(session) for session in shown_sessions[start:end]]
        }
        if len(shown_sessions) > end:
            page["nextCursor"] = str(end)
        return page

    async def _delete_session(self, raw_params: Any) -> None:
        request = params.read_params(params.SessionParams, raw_params)
        client, session = await self._sessions.find(request.session_id, None)
        # Closed first: a running turn would store its answer in a deleted session.
        await self._sessions.close_session(session.id)
        await client.call(SESSION_DELETE, SessionId(session_id=session.id))

    async def _close_session(self, raw_params: Any) -> None:
        await self._sessions.close_session(
            params.read_params(params.SessionParams, raw_params).session_id
        )

    async def _prompt(self, raw_params: Any) -> JSON:
        request = params.read_params(params.PromptParams, raw_params)
        return await self._sessions.get(request.session_id).prompt(request.prompt)

    async def _cancel_turn(self, raw_params: Any) -> None:
        session = self._sessions.get(
            params.read_params(params.SessionParams, raw_params).session_id
        )
        # A notification is handled before the next message is read, and stopping may take a while.
        self._sessions.run_in_background(session.cancel())

    async def _set_mode(self, raw_params: Any) -> None:
        request = params.read_params(params.ModeParams, raw_params)
        await self._choose_value(request.session_id, MODE, request.mode_id)

    async def _set_option(self, raw_params: Any) -> JSON:
        request = params.read_params(params.OptionParams, raw_params)
        editor_session = await self._choose_value(
            request.session_id, request.config_id, str(request.value)
        )
        return {"configOptions": editor_session.build_state()["configOptions"]}

    async def _choose_value(self, session_id: str, option: str, value: str) -> EditorSession:
        editor_session = self._sessions.get(session_id)
        await editor_session.choose_value(option, value)
        return editor_session


def _describe_session(session: Session) -> JSON:
    updated_at = datetime.fromtimestamp(session.time.updated / 1000, UTC).isoformat()
    fields: JSON = {
        "sessionId": session.id,
        "cwd": session.directory,
        "title": session.title,
        "updatedAt": updated_at,
    }
    if roots := list_roots(session):
        fields["additionalDirectories"] = roots
    return fields
