"""Measures how soon `codeloop acp`, started by an editor, shows something."""

import json
import statistics
import subprocess
import time
from typing import IO, Any

from bench.bench_run import BenchRun
from bench.process_runner import MeasurementFailed
from bench.scenario_server import Scenario, ScenarioServer
from bench.subjects import CODELOOP, PROMPT, Installation


def measure_acp(bench: BenchRun) -> None:
    """Measure from the start to the first update, and to the first text of an answer."""
    installation = bench.codeloop
    with ScenarioServer(Scenario("answer")) as model:
        # The first run makes the database and does not count.
        _time_first_updates(installation, model.url)
        times = [_time_first_updates(installation, model.url) for _ in range(bench.rounds)]
    bench.put(installation, "acp-first-update", statistics.median(update for update, _ in times))
    bench.put(installation, "acp-first-text", statistics.median(text for _, text in times))


def _time_first_updates(installation: Installation, url: str) -> tuple[float, float]:
    """Start codeloop, open a session and prompt; return the times of the first update
    and the first text, ms.
    """
    command = installation.fill((CODELOOP, "acp"), url)
    begin = time.perf_counter()
    process = subprocess.Popen(
        list(command.argv),
        cwd=command.cwd,
        env=command.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        _send_request(process.stdin, 1, "initialize", {"protocolVersion": 1})
        _send_request(
            process.stdin, 2, "session/new", {"cwd": str(installation.project), "mcpServers": []}
        )
        first_update = 0.0
        for line in process.stdout:
            message = json.loads(line)
            now = (time.perf_counter() - begin) * 1000
            if message.get("id") == 2:
                prompt = [{"type": "text", "text": PROMPT}]
                session_id = message["result"]["sessionId"]
                _send_request(
                    process.stdin, 3, "session/prompt", {"sessionId": session_id, "prompt": prompt}
                )
            elif message.get("method") == "session/update":
                first_update = first_update or now
                if message["params"]["update"]["sessionUpdate"] == "agent_message_chunk":
                    return first_update, now
        raise MeasurementFailed("codeloop acp ended before it had answered")
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def _send_request(stream: IO[bytes], number: int, method: str, params: dict[str, Any]) -> None:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()
