"""A client of the event streams, over a real connection,
and what it makes of them: the state that it would show.
"""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from codeloop.store.store import Store
from tests.server.support.serving import Served

Event = dict[str, Any]


class Stream:
    """One connection. `place`: the last `id:` line, as a browser keeps it."""

    def __init__(self, lines: AsyncIterator[str], headers: Any) -> None:
        self._lines = lines
        self.headers = headers
        self.place: str | None = None
        self.places: list[str] = []
        """All `id:` lines."""

    async def next(self, deadline: float = 60) -> Event:
        """Return the next event; fails when none comes, or when the stream ends."""
        data: str | None = None
        async with asyncio.timeout(deadline):
            async for line in self._lines:
                name, _, value = line.partition(": ")
                match name:
                    case "id":
                        self.place = value
                        self.places.append(value)
                    case "data":
                        assert data is None, "one data line an event"
                        data = value
                    case "":
                        assert data is not None
                        return json.loads(data)
                    case _:
                        raise AssertionError(line)
        raise EOFError

    async def until(self, is_last: Callable[[Event], object], deadline: float = 60) -> list[Event]:
        """Return the events up to one."""
        events: list[Event] = []
        async with asyncio.timeout(deadline):
            while not events or not is_last(events[-1]):
                events.append(await self.next(deadline))
        return events

    async def turn(self) -> list[Event]:
        """Return the events up to the end of a turn."""
        return await self.until(lambda event: event.get("payload", event)["type"] == "session.idle")


@asynccontextmanager
async def following(
    it: Served, path: str = "/event", place: str | None = None, **query: str
) -> AsyncGenerator[Stream]:
    """Open a stream; `place` is sent as `Last-Event-ID`."""
    headers = {} if place is None else {"last-event-id": place}
    async with it.http.stream("GET", path, params=query, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        yield Stream(response.aiter_lines(), response.headers)


async def connected(
    it: Served, target: str, receive: int | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a stream on a bare connection, and read its first event.
    `receive`: bytes that the kernel takes in.
    """
    auth = it.http.auth
    assert auth is not None
    request = next(auth.auth_flow(it.http.build_request("GET", target)))
    connection = socket.socket()
    if receive is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, (request.url.host, request.url.port))
    reader, writer = await asyncio.open_connection(
        sock=connection, limit=4096 if receive else 2**20
    )
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    writer.write(f"GET {target} HTTP/1.1\r\n{head}\r\n".encode())
    await asyncio.wait_for(reader.readuntil(b"server.connected"), 60)
    return reader, writer


class Mirror:
    """The state that a client builds from events."""

    def __init__(self) -> None:
        self.sessions: dict[str, Any] = {}
        self.messages: dict[str, Any] = {}
        self.parts: dict[str, Any] = {}
        self.resyncs = 0

    def apply(self, event: Event) -> None:
        """Take in an event, of either stream."""
        event = event.get("payload", event)
        properties = event["properties"]
        match event["type"]:
            case "session.created" | "session.updated":
                self.sessions[properties["info"]["id"]] = properties["info"]
            case "session.deleted":
                self._forget(properties["sessionID"])
            case "message.updated":
                self.messages[properties["info"]["id"]] = properties["info"]
            case "message.removed":
                self.messages.pop(properties["messageID"], None)
                self.parts = {
                    k: v for k, v in self.parts.items() if v["messageID"] != properties["messageID"]
                }
            case "message.part.updated":
                self.parts[properties["part"]["id"]] = properties["part"]
            case "message.part.removed":
                self.parts.pop(properties["partID"], None)
            case "message.part.delta":
                part = self.parts.get(properties["partID"])
                if part is not None:
                    self.parts[part["id"]] = {**part, "text": part["text"] + properties["delta"]}
            case "server.resync":
                self.resyncs += 1
            case _:
                pass

    def _forget(self, session_id: str) -> None:
        self.sessions.pop(session_id, None)
        self.messages = {k: v for k, v in self.messages.items() if v["sessionID"] != session_id}
        self.parts = {k: v for k, v in self.parts.items() if v["sessionID"] != session_id}

    def read_anew(self, store: Store) -> None:
        """Read the whole state, as a client does that was told to."""
        other = held(store)
        self.sessions, self.messages, self.parts = other.sessions, other.messages, other.parts

    @property
    def state(self) -> tuple[Any, Any, Any]:
        """All of it, to be compared."""
        return self.sessions, self.messages, self.parts


def held(store: Store, directory: str | None = None) -> Mirror:
    """Return what a store holds, in the form of what a client has made of its events."""
    mirror = Mirror()
    for session in store.list_sessions(directory=directory, limit=10_000):
        mirror.sessions[session.id] = plain(session)
        for entry in store.read_conversation(session.id).entries:
            mirror.messages[entry.info.id] = plain(entry.info)
            mirror.parts.update({part.id: plain(part) for part in entry.parts})
    return mirror


def plain(value: Any) -> Any:
    """Return a record as it is on the wire."""
    return json.loads(msgspec.json.encode(value))


def types(events: list[Event]) -> list[str]:
    """Return the types of events."""
    return [event.get("payload", event)["type"] for event in events]
