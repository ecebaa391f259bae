"""Measures `codeloop serve` as a whole process: its start, its answers,
its memory idle and with 50 sessions.
"""

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
from typing import Any
from urllib.parse import urlsplit

from bench.bench_run import BenchRun
from bench.process_runner import MeasurementFailed
from bench.process_stats import read_cpu, read_resident_memory
from bench.scenario_server import Scenario, ScenarioServer
from bench.subjects import CODELOOP, Installation

PASSWORD = "bench"
TIMEOUT_SECONDS = 60.0
REQUEST_COUNT = 400
SESSION_COUNT = 50
FEW_DELTAS, MANY_DELTAS = 2_000, 20_000
IDLE_SECONDS = 10.0
READY_PREFIX = "opencode server listening on "


class ServerProcess:
    """A running `codeloop serve` and one connection to it."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.address = urlsplit(url)
        self.connection = self.connect()

    def connect(self) -> http.client.HTTPConnection:
        """Return a new connection; it is opened by its first request."""
        return http.client.HTTPConnection(
            self.address.hostname or "", self.address.port or 0, timeout=TIMEOUT_SECONDS
        )

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        connection: http.client.HTTPConnection | None = None,
    ) -> Any:
        """Send a request and return the JSON of its answer.
        Raises MeasurementFailed when it is refused.
        """
        connection = connection or self.connection
        token = base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()
        headers = {"authorization": f"Basic {token}", "content-type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        content = response.read()
        if response.status >= 300:
            raise MeasurementFailed(f"{method} {path}: {response.status} {content[:300]!r}")
        return json.loads(content) if content else None

    def create_session(self) -> str:
        """Create a session and return its id."""
        return self.request("POST", "/session", {"title": "Bench"})["id"]

    @property
    def memory(self) -> float:
        """Resident memory now, MB."""
        return read_resident_memory(self.process.pid)

    @property
    def cpu(self) -> float:
        """CPU used so far, user and system, seconds."""
        return read_cpu(self.process.pid)


@contextmanager
def run_server(installation: Installation, url: str) -> Generator[ServerProcess]:
    """Run a server in an installation, with the model server at `url`. Raises MeasurementFailed."""
    command = installation.fill((CODELOOP, "serve", "--port", "0"), url)
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
        if not line.startswith(READY_PREFIX):
            raise MeasurementFailed(f"the server said {line!r}")
        yield ServerProcess(process, line.removeprefix(READY_PREFIX).strip())
    finally:
        # The server has a session of its own, so this reaches the processes that it has started,
        # too.
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=TIMEOUT_SECONDS)


def measure_server(bench: BenchRun) -> None:
    """Measure the start, a request, and an idle server with one session."""
    installation = bench.codeloop
    starts: list[float] = []
    with ScenarioServer(Scenario("answer")) as model:
        for _ in range(bench.rounds):
            begin = time.perf_counter()
            with run_server(installation, model.url) as server:
                server.request("GET", "/global/health")
                starts.append((time.perf_counter() - begin) * 1000)
        bench.put_own("serve-ready", statistics.median(starts))
        with run_server(installation, model.url) as server:
            session_id = server.create_session()
            server.request(
                "POST",
                f"/session/{session_id}/message",
                {"parts": [{"type": "text", "text": "hi"}]},
            )
            bench.put_own("serve-list", statistics.median(_time_list_requests(server)))
            cpu = server.cpu
            time.sleep(IDLE_SECONDS)
            bench.put_own("serve-idle-cpu", (server.cpu - cpu) / IDLE_SECONDS * 1000)
            bench.put_own("serve-idle-memory", server.memory)


def _time_list_requests(server: ServerProcess) -> list[float]:
    """Return the times of many requests for the list of sessions, ms."""
    times: list[float] = []
    for _ in range(REQUEST_COUNT):
        begin = time.perf_counter()
        server.request("GET", "/session")
        times.append((time.perf_counter() - begin) * 1000)
    return times


def measure_fifty_sessions(bench: BenchRun) -> None:
    """Measure 50 sessions prompted at once, with few deltas and with many,
    each on a server of its own.
    """
    installation = bench.codeloop
    memory: list[float] = []
    for deltas in (FEW_DELTAS, MANY_DELTAS):
        with (
            ScenarioServer(Scenario("deltas", deltas)) as model,
            run_server(installation, model.url) as server,
        ):
            begin = time.perf_counter()
            prompt_all(server, SESSION_COUNT)
            if deltas == FEW_DELTAS:
                bench.put_own("fifty", (time.perf_counter() - begin) * 1000)
            memory.append(server.memory)
    bench.put_own("fifty-growth", memory[1] - memory[0])


def prompt_all(server: ServerProcess, count: int) -> None:
    """Prompt `count` new sessions at once and wait for their answers.
    Raises MeasurementFailed when one is refused.
    """
    failures: list[str] = []
    sessions = [server.create_session() for _ in range(count)]

    def prompt(session_id: str) -> None:
        with closing(server.connect()) as connection:
            try:
                body = {"parts": [{"type": "text", "text": "hi"}]}
                server.request("POST", f"/session/{session_id}/message", body, connection)
            except (MeasurementFailed, OSError) as error:
                failures.append(str(error))

    threads = [threading.Thread(target=prompt, args=(session_id,)) for session_id in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise MeasurementFailed(f"{len(failures)} of {count} prompts failed: {failures[0]}")
