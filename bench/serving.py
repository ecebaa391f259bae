"""The server as a whole process: how soon and how quickly it answers, what it holds idle and with much to do."""

import base64
import http.client
import json
import os
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.figures import Bench
from bench.measure import Failed, read_cpu
from bench.server import Scenario, Server
from bench.subject import CODELOOP, Place

PASSWORD = "bench"
WAIT = 60.0
GETS = 400
SESSIONS = 50
FEW, MANY = 2_000, 20_000
IDLE = 10.0
READY = "opencode server listening on "


class Served:
    """A running `codeloop serve` and one connection to it."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.address = urlsplit(url)
        self.connection = self.connected()

    def connected(self) -> http.client.HTTPConnection:
        """Open a further connection."""
        return http.client.HTTPConnection(self.address.hostname or "", self.address.port or 0, timeout=WAIT)

    def ask(self, method: str, path: str, body: object = None, on: http.client.HTTPConnection | None = None) -> Any:
        """Ask for a route and return its JSON. Raises Failed when it is refused."""
        connection = on or self.connection
        token = base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()
        headers = {"authorization": f"Basic {token}", "content-type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        content = response.read()
        if response.status >= 300:
            raise Failed(f"{method} {path}: {response.status} {content[:300]!r}")
        return json.loads(content) if content else None

    def session(self) -> str:
        """Make a session and return its id."""
        return self.ask("POST", "/session", {"title": "Bench"})["id"]

    @property
    def memory(self) -> float:
        """Resident memory now, MB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    @property
    def cpu(self) -> float:
        """CPU used so far, user and system, seconds."""
        return read_cpu(self.process.pid)


@contextmanager
def serving(place: Place, url: str) -> Generator[Served]:
    """Start a server in a place, with the model server at `url`; end it afterwards. Raises Failed."""
    command = place.fill((CODELOOP, "serve", "--port", "0"), url)
    process = subprocess.Popen(
        list(command.argv),
        cwd=command.cwd,
        env={**command.environ, "CODELOOP_SERVER_PASSWORD": PASSWORD},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith(READY):
            raise Failed(f"the server said {line!r}")
        yield Served(process, line.removeprefix(READY).strip())
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=WAIT)


def serve(bench: Bench) -> None:
    """Measure the start, a request, and an idle server with one session."""
    place = next((each for each in bench.places if each.subject.name == "codeloop"), None)
    if place is None:
        return
    starts: list[float] = []
    with Server(Scenario("answer")) as model:
        for _ in range(bench.rounds):
            begin = time.perf_counter()
            with serving(place, model.url) as server:
                server.ask("GET", "/global/health")
                starts.append((time.perf_counter() - begin) * 1000)
        bench.put(place, "serve-ready", statistics.median(starts))
        with serving(place, model.url) as server:
            session_id = server.session()
            server.ask("POST", f"/session/{session_id}/message", {"parts": [{"type": "text", "text": "hi"}]})
            bench.put(place, "serve-list", statistics.median(_gets(server)))
            cpu = server.cpu
            time.sleep(IDLE)
            bench.put(place, "serve-idle-cpu", (server.cpu - cpu) / IDLE * 1000)
            bench.put(place, "serve-idle-memory", server.memory)


def _gets(server: Served) -> list[float]:
    """Return how long each of many requests for the list of sessions took, in ms."""
    times: list[float] = []
    for _ in range(GETS):
        begin = time.perf_counter()
        server.ask("GET", "/session")
        times.append((time.perf_counter() - begin) * 1000)
    return times


def fifty(bench: Bench) -> None:
    """Measure 50 sessions prompted at once, with few deltas and with many, each on a server of its own."""
    place = next((each for each in bench.places if each.subject.name == "codeloop"), None)
    if place is None:
        return
    memory: list[float] = []
    for deltas in (FEW, MANY):
        with Server(Scenario("deltas", deltas)) as model, serving(place, model.url) as server:
            begin = time.perf_counter()
            prompt_all(server, SESSIONS)
            if deltas == FEW:
                bench.put(place, "fifty", (time.perf_counter() - begin) * 1000)
            memory.append(server.memory)
    bench.put(place, "fifty-growth", memory[1] - memory[0])


def prompt_all(server: Served, number: int) -> None:
    """Prompt so many sessions at once and wait for their answers. Raises Failed when one is refused."""
    failures: list[str] = []
    sessions = [server.session() for _ in range(number)]

    def prompt(session_id: str) -> None:
        with closing(server.connected()) as connection:
            try:
                body = {"parts": [{"type": "text", "text": "hi"}]}
                server.ask("POST", f"/session/{session_id}/message", body, connection)
            except (Failed, OSError) as error:
                failures.append(str(error))

    threads = [threading.Thread(target=prompt, args=(session_id,)) for session_id in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise Failed(f"{len(failures)} of {number} prompts failed: {failures[0]}")
