"""What a client hears of a session over `GET /event`,
as short lines that a test can compare in order.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.server.support.serving import Served

Event = dict[str, Any]


class Hearing:
    """The events of a directory since it was entered.
    `lines` leaves out those of other sessions than `session`.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._more = asyncio.Event()

    def hear(self, event: Event) -> None:
        self.events.append(event)
        self._more.set()

    async def until(self, ready: Callable[[list[Event]], object], seconds: float = 60) -> None:
        """Wait until the events so far satisfy a condition."""
        async with asyncio.timeout(seconds):
            while not ready(self.events):
                self._more.clear()
                await self._more.wait()

    async def line(self, line: str, session: str, count: int = 1) -> None:
        """Wait until a line has come so many times."""
        await self.until(lambda _: self.lines(session).count(line) >= count)

    async def idle(self, session: str, count: int = 1) -> list[str]:
        """Wait for the end of the session's turn, check every shape, and return its lines."""
        await self.line("session.idle", session, count)
        for event in self.events:
            check(event)
        return self.lines(session)

    async def asked(self, kind: str = "permission", count: int = 1) -> list[Event]:
        """Wait for questions and return their properties."""
        await self.until(lambda events: len(of(events, f"{kind}.asked")) >= count)
        return of(self.events, f"{kind}.asked")

    def lines(self, session: str) -> list[str]:
        own = [event for event in self.events if event["properties"].get("sessionID") == session]
        return [line for event in own if (line := said(event))]

    def forget(self) -> None:
        self.events.clear()


def of(events: list[Event], kind: str) -> list[Event]:
    """Return the properties of the events of a type."""
    return [event["properties"] for event in events if event["type"] == kind]


@asynccontextmanager
async def hearing(it: Served) -> AsyncGenerator[Hearing]:
    """Follow the events of the server's own directory over HTTP."""
    heard = Hearing()
    begun = asyncio.Event()

    async def listen() -> None:
        async with it.http.stream("GET", "/event", params={"directory": str(it.work)}) as response:
            assert response.status_code == 200
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    heard.hear(json.loads(line.removeprefix("data: ")))
                    begun.set()

    listening = asyncio.create_task(listen())
    waiting = asyncio.create_task(begun.wait())
    try:
        await asyncio.wait([listening, waiting], timeout=60, return_when=asyncio.FIRST_COMPLETED)
        assert begun.is_set()
        yield heard
    finally:
        waiting.cancel()
        listening.cancel()
        await asyncio.wait([listening])


def said(event: Event) -> str:
    """Return an event in a line: what a client reads of it."""
    kind, properties = event["type"], event["properties"]
    match kind:
        case "session.status":
            status = properties["status"]
            return " ".join(
                [
                    "status",
                    *(str(status[key]) for key in ("type", "attempt", "message") if key in status),
                ]
            )
        case "message.updated":
            return _message(properties["info"])
        case "message.part.updated":
            return _part(properties["part"])
        case "message.part.delta":
            return f"delta {properties['field']} {properties['delta']!r}"
        case "session.error":
            return f"session.error {properties['error']['name']}"
        case "session.diff":
            return f"session.diff {len(properties['diff'])}"
        case "permission.replied":
            return f"permission.replied {properties['reply']}"
        case _:
            return kind


def _message(info: Event) -> str:
    if info["role"] == "user":
        diffs = f" diffs {len(info['summary']['diffs'])}" if "summary" in info else ""
        return f"user{diffs}"
    words = ["assistant"]
    words += ["summary"] if info.get("summary") else []
    words += [info["finish"]] if "finish" in info else []
    words += [info["error"]["name"]] if "error" in info else []
    words += ["completed"] if "completed" in info["time"] else []
    return " ".join(words)


def _part(part: Event) -> str:
    match part["type"]:
        case "text" | "reasoning" as kind:
            words = [kind, "synthetic"] if part.get("synthetic") else [kind, repr(part["text"])]
            return " ".join([*words, "end"] if "end" in part.get("time", {}) else words)
        case "tool":
            return f"{part['tool']} {part['state']['status']}"
        case "step-finish":
            return f"step-finish {part['reason']}"
        case kind:
            return str(kind)


def check(event: Event) -> None:
    """Fail when an event lacks a field without which a reference client
    crashes or shows nothing.
    """
    properties = event["properties"]
    match event["type"]:
        case "session.created" | "session.updated":
            info = properties["info"]
            assert info["id"] == properties["sessionID"]
            assert isinstance(info["title"], str)
            assert isinstance(info["cost"], int | float)
            assert info["time"]["updated"] >= info["time"]["created"] > 10**12
        case "message.updated":
            info = properties["info"]
            assert info["id"].startswith("msg_")
            assert info["sessionID"] == properties["sessionID"]
            assert info["time"]["created"] > 10**12
            if info["role"] == "assistant":
                _check_answer(info)
        case "message.part.updated":
            part = properties["part"]
            assert part["sessionID"] == properties["sessionID"]
            assert part["messageID"].startswith("msg_")
            assert part["id"].startswith("prt_")
            assert isinstance(properties["time"], int)
            if part["type"] == "tool":
                _check_state(part["state"])
        case _:
            pass


def _check_answer(info: Event) -> None:
    assert info["parentID"].startswith("msg_")
    assert info["mode"]
    assert info["agent"]
    assert info["modelID"]
    assert info["providerID"]
    assert info["path"]["cwd"]
    assert {"input", "output", "reasoning"} <= info["tokens"].keys()
    assert set(info["tokens"]["cache"]) == {"read", "write"}
    assert isinstance(info["cost"], int | float)
    if "completed" in info["time"]:
        assert info["time"]["completed"] >= info["time"]["created"]


def _check_state(state: Event) -> None:
    match state["status"]:
        case "pending":
            assert (state["input"], state["raw"]) == ({}, "")
        case "running":
            assert isinstance(state["input"], dict)
            assert state["time"]["start"] > 10**12
        case "completed":
            assert isinstance(state["output"], str)
            assert isinstance(state["title"], str)
            assert isinstance(state["metadata"], dict)
            assert state["time"]["end"] >= state["time"]["start"]
        case status:
            assert status == "error"
            assert state["error"]
            assert state["time"]["end"] >= state["time"]["start"]
