"""Measures event streams: the server runs in a process of its own,
the clients in this one read as fast as they can.

`python -m bench.streams FOLDER` runs the server. It prints its URL, then obeys the lines of its
standard input: `append N` stores N events one by one, `deltas N` publishes N deltas. It answers
each with a line of JSON.
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

from bench.bench_run import BenchRun
from codeloop.app.app import App
from codeloop.app.project import Project
from codeloop.app.settings import Startup
from codeloop.client.local import LocalClient
from codeloop.schema.api.session_requests import SESSION_CREATE, CreateSession
from codeloop.schema.event import make_session_updated
from codeloop.schema.live_events import Delta, PartDelta
from codeloop.schema.wire import replace
from codeloop.server.server import ListenOptions, Server

ROOT = Path(__file__).resolve().parents[1]
CLIENT_COUNT = 20
DELTA_COUNT = 20_000
GROWTH_DELTA_COUNT = 100_000
APPEND_COUNT = 200
TIMEOUT_SECONDS = 120.0
DELTA_MARK = b'"message.part.delta"'


def measure_streams(bench: BenchRun) -> None:
    """Measure the latency of stored events, the cost of deltas for many clients,
    and the memory that they leave.
    """
    rounds = [
        asyncio.run(_measure_round(bench.folder / f"streams-{number}"))
        for number in range(min(bench.rounds, 3))
    ]
    for name in rounds[0]:
        bench.put_own(name, statistics.median(figures[name] for figures in rounds))


async def _measure_round(folder: Path) -> dict[str, float]:
    async with _start_server(folder) as server:
        figures = {"stream-latency": await _measure_latency(server)}
        before = await server.send_command("deltas 0")
        async with _connect_clients(server, CLIENT_COUNT) as clients:
            started = time.perf_counter()
            done = asyncio.gather(*(client.count_deltas(DELTA_COUNT) for client in clients))
            await server.send_command(f"deltas {DELTA_COUNT}")
            counts = await done
            wall = time.perf_counter() - started
        after = await server.send_command("deltas 0")
        figures["stream-clients"] = wall * 1000
        # Seconds of all deliveries, as milliseconds of a thousand.
        figures["stream-clients-cpu"] = (
            (after["cpu"] - before["cpu"]) * 1_000_000 / (CLIENT_COUNT * DELTA_COUNT)
        )
        figures["stream-kept"] = sum(counts) / (CLIENT_COUNT * DELTA_COUNT)
        async with _connect_clients(server, 1) as (client,):
            done = asyncio.gather(client.count_deltas(GROWTH_DELTA_COUNT))
            await server.send_command(f"deltas {GROWTH_DELTA_COUNT}")
            await done
        figures["stream-memory"] = (await server.send_command("deltas 0"))["memory"] - after[
            "memory"
        ]
        return figures


async def _measure_latency(server: "_StreamServer") -> float:
    """Return the median time from an append to the client's socket, ms.

    The server puts the time into the event: processes of one machine have the same `perf_counter`.
    """
    async with _connect_clients(server, 1) as (client,):
        times = asyncio.create_task(client.measure_latencies(APPEND_COUNT))
        await server.send_command(f"append {APPEND_COUNT}")
        return statistics.median(await times)


class _StreamClient:
    """A client that counts bytes rather than parsing events: it must be faster than the server."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def count_deltas(self, wanted: int) -> int:
        """Read until `wanted` deltas have come or the stream ends; return their number."""
        count, tail = 0, b""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while count < wanted and (data := await self._reader.read(1 << 20)):
                data = tail + data
                count += data.count(DELTA_MARK)
                # A mark may be split between two reads. The rest is one byte shorter than it,
                # so none is counted twice.
                tail = data[-len(DELTA_MARK) + 1 :]
        return count

    async def measure_latencies(self, wanted: int) -> list[float]:
        """Return the ages of stored events when they come, ms."""
        latencies: list[float] = []
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while len(latencies) < wanted:
                line = await self._reader.readline()
                received_at = time.perf_counter()
                if b'"session.updated"' in line:
                    latencies.append(
                        (received_at - float(json.loads(line[6:])["properties"]["info"]["title"]))
                        * 1000
                    )
        return latencies


class _StreamServer:
    """The process of the server."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self._process = process
        self.url = url

    async def send_command(self, line: str) -> dict[str, Any]:
        """Send a command and wait for its end; return the server's `cpu` so far (seconds)
        and its `memory` (MB).
        """
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{line}\n".encode())
        return json.loads(await asyncio.wait_for(self._process.stdout.readline(), TIMEOUT_SECONDS))


@asynccontextmanager
async def _start_server(folder: Path) -> AsyncGenerator[_StreamServer]:
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
        yield _StreamServer(process, url)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@asynccontextmanager
async def _connect_clients(
    server: _StreamServer, count: int
) -> AsyncGenerator[list[_StreamClient]]:
    address = urlsplit(server.url)
    connections = [
        await asyncio.open_connection(address.hostname, address.port) for _ in range(count)
    ]
    try:
        for reader, writer in connections:
            writer.write(b"GET /event HTTP/1.1\r\nhost: %b\r\n\r\n" % address.netloc.encode())
            await asyncio.wait_for(reader.readuntil(b"server.connected"), TIMEOUT_SECONDS)
        yield [_StreamClient(reader) for reader, _ in connections]
    finally:
        for _, writer in connections:
            writer.close()


async def _run_server(folder: Path) -> None:
    work = folder / "work"
    work.mkdir(parents=True)
    environment = {
        "CODELOOP_HOME": str(folder / "home"),
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
    }
    app = App(Startup(directory=work, environment=environment))
    server = Server(app, ListenOptions())
    await server.start()
    project = await app.get_project(work)
    session = await LocalClient(project).call(SESSION_CREATE, CreateSession())
    print(server.url, flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        kind, count = line.split()
        await {"append": _append_events, "deltas": _publish_deltas}[kind](
            project, session.id, int(count)
        )
        print(json.dumps({"cpu": time.process_time(), "memory": _read_memory()}), flush=True)
    await server.stop()


async def _append_events(project: Project, session_id: str, count: int) -> None:
    """Store events whose title is the time of the append."""
    for _ in range(count):
        await asyncio.sleep(0.01)
        info = replace(project.store.get_session(session_id), title=str(time.perf_counter()))
        project.store.append(make_session_updated(info))


async def _publish_deltas(project: Project, session_id: str, count: int) -> None:
    """Publish deltas one by one; after each, all other tasks of the server have a turn."""
    delta = Delta(
        session_id=session_id,
        message_id="msg_1",
        part_id="prt_1",
        field="text",
        delta="a word or two ",
    )
    for _ in range(count):
        project.store.publish_live(PartDelta(properties=delta))
        await asyncio.sleep(0)
    # The last deltas are still on their way to the sockets.
    await asyncio.sleep(0.2)


def _read_memory() -> float:
    """Return the resident memory of this process, MB, by `ps`: macOS has no /proc."""
    shown = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True
    )
    return int(shown.stdout) / 1024


if __name__ == "__main__":
    asyncio.run(_run_server(Path(sys.argv[1])))
