"""The agent's side of the protocol: the methods that an editor calls."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from codeloop import __version__
from codeloop.acp import params
from codeloop.acp.buffers import EditorBuffers
from codeloop.acp.connection import INVALID_PARAMS, NO_METHOD, EditorConnection, RpcError
from codeloop.acp.editor_sessions import EditorSessions, OpenClient
from codeloop.acp.editor_terminal import EditorTerminals
from codeloop.acp.options import MODE, choose
from codeloop.acp.questions import ConnectedEditor
from codeloop.acp.roots import roots_of
from codeloop.acp.session import EditorSession
from codeloop.acp.versions.version import Version
from codeloop.acp.versions.version1 import Version1
from codeloop.client.wire.standard_lines import open_standard_lines
from codeloop.schema.api.providers import ProviderId
from codeloop.schema.api.session_requests import CreateSession, ForkSession, ListAllSessions, ListSessions, SessionId
from codeloop.schema.message import Session
from codeloop.schema.operation import (
    AUTH_REMOVE,
    CONFIG_PROVIDERS,
    SESSION_CREATE,
    SESSION_DELETE,
    SESSION_EVERYTHING,
    SESSION_FORK,
    SESSION_LIST,
    NoArguments,
)
from codeloop.schema.permission import PROFILE
from codeloop.schema.wire import JSON

DRAFT = 2
"""The version that is spoken on request only."""
_PAGE = 50
_EVERY = 10_000


class AcpLaunch(Struct, frozen=True):
    """What the flags say; `profile`: of new sessions, None for the configured one. `newest`: version to speak.

    `terminals`: the editor's, where commands that leave the sandbox are to run in them.
    """

    open_client: OpenClient
    buffers: EditorBuffers
    profile: str | None = None
    newest: int = 1
    terminals: EditorTerminals | None = None


async def serve_editor(launch: AcpLaunch) -> None:
    """Serve an editor over stdin and stdout until stdin ends, or this is cancelled."""
    async with open_standard_lines() as lines:
        agent = EditorAgent(launch, lines.write)
        lines.start(agent.connection.take)
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

    async def handle(self, method: str, given: Any) -> Any:
        """Carry out a method. Raises RpcError, CodeloopError."""
        carry_out = self._methods.get(method)
        if carry_out is None:
            raise RpcError(NO_METHOD, f"There is no method {method}.")
        return await carry_out(given)

    async def close(self) -> None:
        """Stop every session, and what is still being answered."""
        await self._sessions.close()
        await self.connection.close()

    async def _initialize(self, given: Any) -> JSON:
        asked = params.read_params(params.InitializeParams, given)
        able = asked.client_capabilities or params.ClientCapabilities()
        version: Version = Version1(able)
        if min(asked.protocol_version, self._launch.newest) >= DRAFT:
            from codeloop.acp.versions.version2 import Version2, read_capabilities

            version, able = Version2(), read_capabilities(asked.capabilities or params.DraftCapabilities())
        known = self._launch.terminals.known if self._launch.terminals is not None else set[str]()
        self._sessions.link = ConnectedEditor(self.connection, version, able, known)
        self._methods = self._list_methods(version.number)
        self._launch.buffers.is_offered = able.fs.read_text_file and able.fs.write_text_file
        if self._launch.terminals is not None:
            self._launch.terminals.is_offered = able.terminal
        sign_in: JSON = {
            "type": "terminal",
            "id": "login",
            "name": "Sign in to a model's service",
            "description": "Asks in a terminal which service to use, and for its key.",
            "args": ["--login"],
        }
        can_sign_in = able.auth is not None and able.auth.terminal
        info: JSON = {"name": "codeloop", "title": "codeloop", "version": __version__}
        return version.greet(sign_in if can_sign_in else None, info)

    def _list_methods(self, version: int) -> dict[str, Callable[[Any], Awaitable[Any]]]:
        """Return the methods of a version by name."""
        both: dict[str, Callable[[Any], Awaitable[Any]]] = {
            "initialize": self._initialize,
            "session/new": self._new,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/delete": self._delete,
            "session/close": self._close,
            "session/prompt": self._prompt,
            "session/cancel": self._cancel,
            "session/set_config_option": self._set_option,
        }
        if version == DRAFT:
            return {**both, "auth/login": self._authenticate, "auth/logout": self._logout}
        return {
            **both,
            "authenticate": self._authenticate,
            "logout": self._logout,
            "session/load": self._load,
            "session/fork": self._fork,
            "session/set_mode": self._set_mode,
        }

    async def _authenticate(self, given: Any) -> None:
        asked = params.read_params(params.AuthenticateParams, given)
        raise RpcError(INVALID_PARAMS, f"{asked.method_id} is done in a terminal: `codeloop auth login`.")

    async def _logout(self, _given: Any) -> None:
        """Forget every key and sign-in that is stored; those of the environment stay."""
        client = await self._sessions.client_of(str(Path.cwd()))
        usable = await client.call(CONFIG_PROVIDERS, NoArguments())
        for provider in usable.providers:
            if provider.source == "api":
                await client.call(AUTH_REMOVE, ProviderId(provider_id=provider.id))
        await self._sessions.reload()

    async def _new(self, given: Any) -> JSON:
        asked = params.read_params(params.NewParams, given)
        client = await self._sessions.client_of(asked.cwd)
        metadata = {PROFILE: self._launch.profile} if self._launch.profile else None
        session = await client.call(SESSION_CREATE, CreateSession(metadata=metadata))
        opened = await self._sessions.open(client, session, asked)
        return {"sessionId": session.id, **opened.state()}

    async def _load(self, given: Any) -> JSON:
        opened = await self._reopen(given)
        await opened.replay()
        return opened.state()

    async def _resume(self, given: Any) -> JSON:
        opened = await self._reopen(given)
        replay = params.read_params(params.OpenParams, given).replay_from
        if replay is not None and replay.type != "start":
            raise RpcError(INVALID_PARAMS, f"A conversation is sent again from its start, not from {replay.type!r}.")
        if replay is not None and self._sessions.link.version.number == DRAFT:
            await opened.replay()
        return opened.state()

    async def _reopen(self, given: Any) -> EditorSession:
        asked = params.read_params(params.OpenParams, given)
        client, session = await self._sessions.find(asked.session_id, asked.cwd)
        return await self._sessions.open(client, session, asked)

    async def _fork(self, given: Any) -> JSON:
        asked = params.read_params(params.OpenParams, given)
        client, session = await self._sessions.find(asked.session_id, asked.cwd)
        copy = await client.call(SESSION_FORK, ForkSession(session_id=session.id))
        opened = await self._sessions.open(client, copy, asked)
        return {"sessionId": copy.id, **opened.state()}

    async def _list(self, given: Any) -> JSON:
        asked = params.read_params(params.ListSessionsParams, given)
        cursor = asked.cursor or "0"
        if not cursor.isdecimal():
            raise RpcError(INVALID_PARAMS, f"{cursor!r} is not a cursor of this list.")
        start = int(cursor)
        client = await self._sessions.client_of(asked.cwd or str(Path.cwd()))
        if asked.cwd is not None:
            found = await client.call(SESSION_LIST, ListSessions(directory=asked.cwd, roots=True, limit=_EVERY))
        else:
            found = await client.call(SESSION_EVERYTHING, ListAllSessions(limit=_EVERY))
        rows = [each for each in found if each.parent_id is None and not each.time.archived]
        more: JSON = {"nextCursor": str(start + _PAGE)} if len(rows) > start + _PAGE else {}
        return {"sessions": [_describe(session) for session in rows[start : start + _PAGE]], **more}

    async def _delete(self, given: Any) -> None:
        asked = params.read_params(params.NamedParams, given)
        client, session = await self._sessions.find(asked.session_id, None)
        await self._sessions.forget(session.id)
        await client.call(SESSION_DELETE, SessionId(session_id=session.id))

    async def _close(self, given: Any) -> None:
        await self._sessions.forget(params.read_params(params.NamedParams, given).session_id)

    async def _prompt(self, given: Any) -> JSON:
        asked = params.read_params(params.PromptParams, given)
        return await self._sessions.get(asked.session_id).prompt(asked.prompt)

    async def _cancel(self, given: Any) -> None:
        session = self._sessions.get(params.read_params(params.NamedParams, given).session_id)
        self._sessions.do_later(session.cancel())

    async def _set_mode(self, given: Any) -> None:
        asked = params.read_params(params.ModeParams, given)
        await self._choose(asked.session_id, MODE, asked.mode_id)

    async def _set_option(self, given: Any) -> JSON:
        asked = params.read_params(params.OptionParams, given)
        opened = await self._choose(asked.session_id, asked.config_id, str(asked.value))
        return {"configOptions": opened.state()["configOptions"]}

    async def _choose(self, session_id: str, option: str, value: str) -> EditorSession:
        opened = self._sessions.get(session_id)
        opened.session = await choose(opened.client, opened.session, opened.choices, opened.available, option, value)
        opened.report_options()
        return opened


def _describe(session: Session) -> JSON:
    at = datetime.fromtimestamp(session.time.updated / 1000, UTC).isoformat()
    found: JSON = {"sessionId": session.id, "cwd": session.directory, "title": session.title, "updatedAt": at}
    return {**found, "additionalDirectories": roots} if (roots := roots_of(session)) else found
