"""Clients of terminals: they connect, and remember what they saw."""

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.server.support.serving import PASSWORD, Served

DEADLINE = 60
BASIC = {"Authorization": "Basic " + base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()}


class Screen:
    """A connected client: all text that came, and the cursors that were told."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.pieces: list[str] = []
        self.cursors: list[int] = []
        self.replay = ""

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    async def read(self) -> None:
        message = await asyncio.wait_for(self.socket.recv(), DEADLINE)
        if isinstance(message, str):
            self.pieces.append(message)
        else:
            assert message[:1] == b"\0"
            self.cursors.append(json.loads(message[1:])["cursor"])
            self.replay = self.text

    async def until(self, wanted: str) -> None:
        async with asyncio.timeout(DEADLINE):
            while wanted not in "".join(self.pieces[-20:]):
                await self.read()

    async def end(self) -> int:
        """Read to the end and return the close code."""
        try:
            while True:
                await self.read()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else 1006


@contextlib.asynccontextmanager
async def connected(
    it: Served, pty_id: str, query: str = "", headers: dict[str, str] | None = None, **options: Any
) -> AsyncGenerator[Screen]:
    """Connect, and read the replay."""
    url = f"{it.url.replace('http', 'ws', 1)}/pty/{pty_id}/connect{query}"
    given = BASIC if headers is None else headers
    async with connect(
        url, additional_headers=given, proxy=None, open_timeout=DEADLINE, **options
    ) as socket:
        screen = Screen(socket)
        while not screen.cursors:
            await screen.read()
        yield screen


async def refused(
    it: Served, pty_id: str, query: str = "", headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """Return status and JSON with which a handshake is refused."""
    with pytest.raises(InvalidStatus) as caught:
        async with connected(it, pty_id, query, headers):
            pass
    response = caught.value.response
    return response.status_code, json.loads(response.body or b"null")


async def opened(it: Served, *command: str, **more: Any) -> str:
    """Open a terminal and return its id."""
    return (await it.post("/pty", {"command": command[0], "args": list(command[1:]), **more}))["id"]


async def script(it: Served, text: str) -> str:
    return await opened(it, "/usr/bin/env", "sh", "-c", text)


async def gone(it: Served, pty_id: str) -> None:
    """Wait until a terminal no longer exists."""
    async with asyncio.timeout(DEADLINE):
        while (await it.http.get(f"/pty/{pty_id}")).status_code != 404:
            await asyncio.sleep(0.01)
