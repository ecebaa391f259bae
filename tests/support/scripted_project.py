"""A project in a temporary folder, used through its client;
the model is a script, everything else is real.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.app.app import App
from codeloop.app.models.open_models import SingleModel
from codeloop.app.project import Project, open_project
from codeloop.app.settings import Startup
from codeloop.client.client import Client
from codeloop.client.http import HttpClient
from codeloop.client.local import LocalClient
from codeloop.client.wire import transport
from codeloop.model.chat import (
    AssistantModelMessage,
    CallPiece,
    ChatModel,
    ModelEvent,
    ModelInfo,
    ModelMessage,
    ModelRequest,
    ResultPiece,
    TextPiece,
    ToolModelMessage,
    UserModelMessage,
)
from codeloop.model.testing.replay import SCRIPT_INFO, ScriptedModel
from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall, TokenCount
from codeloop.schema.api.answers import PERMISSION_REPLY, AnswerPermission
from codeloop.schema.api.session_inputs import PROMPT, MessageWithParts, Prompt, TextPartInput
from codeloop.schema.api.session_requests import SESSION_CREATE, CreateSession
from codeloop.schema.part import Part, TextPart, ToolPart, ToolStateCompleted, ToolStateError
from codeloop.schema.permission import PermissionRequest, Reply
from codeloop.server.server import ListenOptions, Server
from codeloop.store.conversation import Conversation
from tests.support.patient_limits import LONG_LIMIT
from tests.support.sandbox_support import allow_commands

PATH = "/usr/local/bin:/usr/bin:/bin"
PASSWORD = "a password for tests"
CLIENT_VARIABLE = "CODELOOP_TEST_CLIENT"


class RequestRecorder:
    """A model that records the requests, and passes them on to another model."""

    def __init__(self, inner: ChatModel) -> None:
        self._inner = inner
        self.requests: list[ModelRequest] = []

    @property
    def info(self) -> ModelInfo:
        return self._inner.info

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self.requests.append(request)
        return self._inner.stream(request)


class ScriptedProject:
    """An open project with a session, and the model that records the requests."""

    def __init__(
        self, project: Project, model: RequestRecorder, session_id: str, client: Client
    ) -> None:
        self.project = project
        self.model = model
        self.session_id = session_id
        self.client = client

    @property
    def work(self) -> Path:
        return self.project.workspace.directory

    async def prompt(self, text: str = "go", **more: Any) -> MessageWithParts:
        """Send a prompt, and wait for the end of the turn."""
        given = [TextPartInput(text=text)]
        # Long, since some tests answer questions meanwhile, key by key.
        async with asyncio.timeout(300):
            return await self.client.call(
                PROMPT, Prompt(session_id=self.session_id, parts=given, **more)
            )

    def view(self) -> Conversation:
        """Return the session as it is stored."""
        return self.project.store.read_conversation(self.session_id)

    def calls(self) -> list[ToolPart]:
        """Return all tool parts, oldest first."""
        return [
            part
            for entry in self.view().entries
            for part in entry.parts
            if isinstance(part, ToolPart)
        ]

    def results(self) -> list[str]:
        """Return the output or error of each call, as the model gets it."""
        return [read_result(part) for part in self.calls()]

    async def question(self) -> PermissionRequest:
        """Wait for a permission request, and return it."""
        return (await self.questions(1))[0]

    async def questions(self, count: int) -> list[PermissionRequest]:
        """Wait until `count` permission requests are open, and return them."""
        await wait_until(lambda: len(self.project.store.list_pending_permissions()) >= count)
        return self.project.store.list_pending_permissions()

    async def answer(
        self, request: PermissionRequest, reply: Reply, message: str | None = None
    ) -> None:
        """Answer a permission request, as a client does."""
        await self.client.call(
            PERMISSION_REPLY, AnswerPermission(request_id=request.id, reply=reply, message=message)
        )


def read_result(part: ToolPart) -> str:
    """Return a call's output or error, as the model gets it; fails if there is none."""
    match part.state:
        case ToolStateCompleted(output=output):
            return output
        case ToolStateError(for_model=error):
            return error
        case _:
            raise AssertionError(f"no result: {part}")


async def wait_until(ready: Callable[[], object], deadline: float = 60) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(deadline):
        while not ready():
            await asyncio.sleep(0.002)


def advance_clock(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let the clock of the running loop go forward: what was to end within these seconds
    ends with its next round.
    """
    loop = asyncio.get_running_loop()
    read_clock = loop.time
    monkeypatch.setattr(loop, "time", lambda: read_clock() + seconds)


def make_call(name: str, call_id: str = "", **arguments: Any) -> ScriptedCall:
    """Return a call for a script."""
    return ScriptedCall(name, arguments, call_id)


def make_answer(*made: ScriptedCall, text: str = "") -> ScriptedAnswer:
    """Return an answer for a script that makes these calls."""
    return ScriptedAnswer(text=text, calls=made, tokens=TokenCount(input=100, output=10))


def make_startup(home: Path, work: Path, **settings: Any) -> Startup:
    """Return a startup in `work`, with all of codeloop's own files below `home`."""
    environment = {"CODELOOP_HOME": str(home), "HOME": str(home), "PATH": PATH, "LANG": "C.UTF-8"}
    return Startup(directory=work, environment=environment, settings=allow_commands(settings))


@asynccontextmanager
async def open_scripted_project(
    tmp_path: Path,
    answers: Sequence[ScriptedAnswer] | ChatModel,
    *,
    info: ModelInfo = SCRIPT_INFO,
    session_id: str | None = None,
    **settings: Any,
) -> AsyncGenerator[ScriptedProject]:
    """Open a project in `tmp_path / "work"` with a scripted model,
    and the client that `both_clients` has set.
    """
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    inner = ScriptedModel(answers, info) if isinstance(answers, Sequence) else answers
    model = RequestRecorder(inner)
    opened = open_over_http if os.environ.get(CLIENT_VARIABLE) == "http" else open_in_process
    startup = make_startup(tmp_path / "home", work, **settings)
    async with opened(startup, SingleModel(model)) as (project, client):
        known = session_id or (await LocalClient(project).call(SESSION_CREATE, CreateSession())).id
        yield ScriptedProject(project, model, known, client)


OpenedProject = tuple[Project, Client]


@asynccontextmanager
async def open_in_process(
    start: Startup, model: SingleModel | None
) -> AsyncGenerator[OpenedProject]:
    """Open a project, with a client in this process."""
    project = await open_project(start, model)
    try:
        yield project, LocalClient(project)
    finally:
        await project.close()


@asynccontextmanager
async def open_over_http(
    start: Startup, model: SingleModel | None
) -> AsyncGenerator[OpenedProject]:
    """Open a project and serve it on a real socket, with a client of that."""
    server = Server(App(start, model), ListenOptions(password=PASSWORD))
    await server.start()
    client = HttpClient(server.url, str(start.directory), (server.options.username, PASSWORD))
    try:
        yield await server.app.get_project(start.directory), client
    finally:
        await client.close()
        await server.stop()


@pytest.fixture(autouse=True, params=["local", "http"])
def both_clients(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test of a module that imports this twice: with the client of `rig` in process,
    and over HTTP.
    """
    monkeypatch.setenv(CLIENT_VARIABLE, request.param)
    # Client and server share a loop: where it stands still for seconds, no connection is late.
    monkeypatch.setattr(transport, "CLIENT_CONNECT", LONG_LIMIT)


LOCAL_CLIENT_ONLY = pytest.mark.parametrize("both_clients", ["local"], indirect=True)
"""Marks a test that does not depend on the client, so that it runs only once."""


async def wait_for_result(wait: Awaitable[Any], seconds: float = 60) -> Any:
    """Wait for a result, with a deadline."""
    return await asyncio.wait_for(wait, seconds)


def check_turns(turns: Sequence[ModelMessage]) -> None:
    """Fail unless a service that checks the pairing of calls and results
    would accept the messages.
    """
    for place, turn in enumerate(turns):
        match turn:
            case UserModelMessage(content=pieces):
                assert pieces
                assert all(piece.text.strip() for piece in pieces if isinstance(piece, TextPiece))
            case AssistantModelMessage(content=pieces):
                assert pieces
                made = [piece for piece in pieces if isinstance(piece, CallPiece)]
                assert all(isinstance(msgspec.json.decode(piece.arguments), dict) for piece in made)
                assert all(piece.text.strip() for piece in pieces if isinstance(piece, TextPiece))
                ids = [piece.id for piece in made]
                assert len(set(ids)) == len(ids)
                assert "" not in ids
                following = turns[place + 1] if place + 1 < len(turns) else None
                answered = (
                    [r.call_id for r in following.content]
                    if isinstance(following, ToolModelMessage)
                    else []
                )
                assert answered == ids
            case ToolModelMessage(content=results):
                assert results
                assert isinstance(turns[place - 1], AssistantModelMessage)
                assert place > 0
                assert all(piece.output for piece in results)


def join_texts(parts: Iterable[Part]) -> str:
    """Return the joined texts of the text parts."""
    return "".join(part.text for part in parts if isinstance(part, TextPart))


def list_texts(turn: ModelMessage) -> list[str]:
    """Return the texts and results of a message, as the model gets them."""
    said: list[str] = []
    for piece in turn.content:
        match piece:
            case TextPiece(text=text):
                said.append(text)
            case ResultPiece(output=output):
                said.append(output)
            case _:
                pass
    return said
