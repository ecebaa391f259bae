"""What the event streams cost: a server in a process of its own, and clients here that read as fast as they can.

`python -m bench.streams FOLDER` is that server. It prints its URL, then obeys lines on its standard input: `append N`
stores N events one by one, `deltas N` shows N, and answers each with a line of JSON.
"""

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.figures import Bench
from codeloop.app.app import App
from codeloop.app.project import Project
from codeloop.app.settings import Startup
from codeloop.client.local import LocalClient
from codeloop.schema.api.session_requests import CreateSession
from codeloop.schema.event import make_session_updated
from codeloop.schema.live_events import Delta, PartDelta
from codeloop.schema.operation import SESSION_CREATE
from codeloop.schema.wire import replace
from codeloop.server.server import ListenOptions, Server

ROOT = Path(__file__).resolve().parents[1]
CLIENTS = 20
DELTAS = 20_000
GROWTH_DELTAS = 100_000
APPENDED = 200
DEADLINE = 120.0
DELTA = b'"message.part.delta"'


def streams(bench: Bench) -> None:
    """Measure the latency of a stored event, the cost of deltas for many clients, and what memory they leave taken."""
    place = bench.places[0]
    rounds = [asyncio.run(_round(bench.folder / f"streams-{number}")) for number in range(min(bench.rounds, 3))]
    for name in rounds[0]:
        bench.put(place, name, statistics.median(figures[name] for figures in rounds))


async def _round(folder: Path) -> dict[str, float]:
    async with _serving(folder) as server:
        figures = {"stream-latency": await _latency(server)}
        before = await server.order("deltas 0")
        async with _reading(server, CLIENTS) as clients:
            started = time.perf_counter()
            done = asyncio.gather(*(client.count(DELTAS) for client in clients))
            after = await server.order(f"deltas {DELTAS}")
            counts = await done
            wall = time.perf_counter() - started
        after = await server.order("deltas 0")
        figures["stream-clients"] = wall * 1000
        figures["stream-clients-cpu"] = (after["cpu"] - before["cpu"]) * 1_000_000 / (CLIENTS * DELTAS)
        figures["stream-kept"] = sum(counts) / (CLIENTS * DELTAS)
        async with _reading(server, 1) as (client,):
            done = asyncio.gather(client.count(GROWTH_DELTAS))
            await server.order(f"deltas {GROWTH_DELTAS}")
            await done
        figures["stream-memory"] = (await server.order("deltas 0"))["memory"] - after["memory"]
        return figures


async def _latency(server: "_Child") -> float:
    """Return the median time from an append to the client's socket, in ms; both processes read the same clock."""
    async with _reading(server, 1) as (client,):
        times = asyncio.create_task(client.latencies(APPENDED))
        await server.order(f"append {APPENDED}")
        return statistics.median(await times)


class _Client:
    """A connection that reads a stream."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def count(self, wanted: int) -> int:
        """Count deltas until there are as many, or the stream ends; return how many came."""
        found, tail = 0, b""
        async with asyncio.timeout(DEADLINE):
            while found < wanted and (data := await self._reader.read(1 << 20)):
                data = tail + data
                found += data.count(DELTA)
                tail = data[-len(DELTA) + 1 :]
        return found

    async def latencies(self, wanted: int) -> list[float]:
        """Return how old stored events are when they come, in ms."""
        found: list[float] = []
        async with asyncio.timeout(DEADLINE):
            while len(found) < wanted:
                line = await self._reader.readline()
                at = time.perf_counter()
                if b'"session.updated"' in line:
                    found.append((at - float(json.loads(line[6:])["properties"]["info"]["title"])) * 1000)
        return found


class _Child:
    """The server's process."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self._process = process
        self.url = url

    async def order(self, line: str) -> dict[str, Any]:
        """Have something done; return what it says: CPU time so far in s, memory in MB."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{line}\n".encode())
        return json.loads(await asyncio.wait_for(self._process.stdout.readline(), DEADLINE))


@asynccontextmanager
async def _serving(folder: Path) -> AsyncGenerator[_Child]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.streams", str(folder)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        assert process.stdout
        url = (await process.stdout.readline()).decode().strip()
        if not url:
            raise OSError("the server of the event streams did not start; its reason is above")
        yield _Child(process, url)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@asynccontextmanager
async def _reading(server: _Child, count: int) -> AsyncGenerator[list[_Client]]:
    address = urlsplit(server.url)
    connections = [await asyncio.open_connection(address.hostname, address.port) for _ in range(count)]
    try:
        for reader, writer in connections:
            writer.write(b"GET /event HTTP/1.1\r\nhost: %b\r\n\r\n" % address.netloc.encode())
            await asyncio.wait_for(reader.readuntil(b"server.connected"), DEADLINE)
        yield [_Client(reader) for reader, _ in connections]
    finally:
        for _, writer in connections:
            writer.close()


async def _serve(folder: Path) -> None:
    work = folder / "work"
    work.mkdir(parents=True)
    environment = {"CODELOOP_HOME": str(folder / "home"), "HOME": str(folder), "PATH": os.environ["PATH"]}
    app = App(Startup(directory=work, environment=environment))
    server = Server(app, ListenOptions())
    await server.start()
    project = await app.get_project(work)
    session = await LocalClient(project).call(SESSION_CREATE, CreateSession())
    print(server.url, flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        kind, count = line.split()
        await {"append": _append, "deltas": _deltas}[kind](project, session.id, int(count))
        print(json.dumps({"cpu": time.process_time(), "memory": _memory()}), flush=True)
    await server.stop()


async def _append(project: Project, session_id: str, count: int) -> None:
    """Store events that say when."""
    for _ in range(count):
        await asyncio.sleep(0.01)
        info = replace(project.store.get_session(session_id), title=str(time.perf_counter()))
        project.store.append(make_session_updated(info))


async def _deltas(project: Project, session_id: str, count: int) -> None:
    """Show deltas one by one: between two of them everybody else has a turn."""
    delta = Delta(session_id=session_id, message_id="msg_1", part_id="prt_1", field="text", delta="a word or two ")
    for _ in range(count):
        project.store.publish_live(PartDelta(properties=delta))
        await asyncio.sleep(0)
    await asyncio.sleep(0.2)


def _memory() -> float:
    """Return what this process holds now, in MB."""
    shown = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True)
    return int(shown.stdout) / 1024


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
