"""`codeloop acp` as an editor starts it: how soon it shows something."""

import json
import statistics
import subprocess
import time
from typing import IO, Any

from bench.figures import Bench
from bench.measure import Failed
from bench.server import Scenario, Server
from bench.subject import CODELOOP, PROMPT, Place


def editor(bench: Bench) -> None:
    """Measure from the start to the first update, and to the first text of an answer."""
    place = next((each for each in bench.places if each.subject.name == "codeloop"), None)
    if place is None:
        return
    with Server(Scenario("answer")) as model:
        _first(place, model.url)  # does not count
        found = [_first(place, model.url) for _ in range(bench.rounds)]
    bench.put(place, "acp-first-update", statistics.median(update for update, _ in found))
    bench.put(place, "acp-first-text", statistics.median(text for _, text in found))


def _first(place: Place, url: str) -> tuple[float, float]:
    """Start it, open a session, prompt; return when the first update and the first text came, in ms. Raises Failed."""
    command = place.fill((CODELOOP, "acp"), url)
    begin = time.perf_counter()
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        list(command.argv), cwd=command.cwd, env=command.environ, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        _send(process.stdin, 1, "initialize", {"protocolVersion": 1})
        _send(process.stdin, 2, "session/new", {"cwd": str(place.project), "mcpServers": []})
        first = 0.0
        for line in process.stdout:
            message = json.loads(line)
            now = (time.perf_counter() - begin) * 1000
            if message.get("id") == 2:
                prompt = [{"type": "text", "text": PROMPT}]
                session_id = message["result"]["sessionId"]
                _send(process.stdin, 3, "session/prompt", {"sessionId": session_id, "prompt": prompt})
            elif message.get("method") == "session/update":
                first = first or now
                if message["params"]["update"]["sessionUpdate"] == "agent_message_chunk":
                    return first, now
        raise Failed("codeloop acp ended before it had answered")
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def _send(stream: IO[bytes], number: int, method: str, params: dict[str, Any]) -> None:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()
