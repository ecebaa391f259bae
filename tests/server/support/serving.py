"""A server on a real socket, in the test's own loop;
the model is a script, everything else is real.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from codeloop.app.app import App
from codeloop.app.models.open_models import SingleModel
from codeloop.app.project import Project
from codeloop.model.chat import ChatModel
from codeloop.model.testing.replay import ScriptedModel
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.server.server import ListenOptions, Server
from tests.support.scripted_project import RequestRecorder, make_startup

PASSWORD = "a password for tests"


class Served:
    """A running server. `http` asks it with the credential; `anonymous` without."""

    def __init__(self, server: Server, model: RequestRecorder, work: Path) -> None:
        self.server = server
        self.model = model
        self.work = work
        auth = (server.options.username, server.options.password or "")
        # Without certificates, which nothing here has: to load those of the machine
        # takes 25 ms each time.
        self.http = httpx2.AsyncClient(base_url=server.url, auth=auth, timeout=60, verify=False)
        self.anonymous = httpx2.AsyncClient(base_url=server.url, timeout=60, verify=False)

    @property
    def app(self) -> App:
        return self.server.app

    @property
    def url(self) -> str:
        return self.server.url

    async def project(self) -> Project:
        """Return the project of the server's own directory."""
        return await self.app.get_project(self.work)

    async def get(self, path: str, status: int = 200, **query: Any) -> Any:
        """GET a route and return its JSON; fails when the status is another."""
        return _json(await self.http.get(path, params=query), status)

    async def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        """POST JSON to a route and return its JSON; fails when the status is another."""
        return _json(await self.http.post(path, json={} if body is None else body), status)

    async def session(self) -> str:
        """Make a session and return its id."""
        return (await self.post("/session"))["id"]

    async def prompt(self, session_id: str, text: str = "go") -> Any:
        """Say something and wait for the end of the turn."""
        return await self.post(
            f"/session/{session_id}/message", {"parts": [{"type": "text", "text": text}]}
        )


def _json(response: httpx2.Response, status: int) -> Any:
    assert response.status_code == status, f"{response.status_code}: {response.text}"
    return response.json() if response.content else None


@asynccontextmanager
async def served(
    tmp_path: Path,
    answers: Sequence[ScriptedAnswer] | ChatModel = (),
    listening: ListenOptions | None = None,
    **settings: Any,
) -> AsyncGenerator[Served]:
    """Serve `tmp_path/work`; `answers` are the model's."""
    work = tmp_path / "work"
    await asyncio.to_thread(work.mkdir, exist_ok=True)
    model = RequestRecorder(ScriptedModel(answers) if isinstance(answers, Sequence) else answers)
    app = App(make_startup(tmp_path / "home", work, **settings), SingleModel(model))
    server = Server(app, listening or ListenOptions(password=PASSWORD))
    await server.start()
    one = Served(server, model, work)
    try:
        yield one
    finally:
        await one.http.aclose()
        await one.anonymous.aclose()
        await server.stop()
