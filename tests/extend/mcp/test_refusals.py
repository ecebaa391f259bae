"""What a remote server answers instead of a message is told with its status and hint to wait."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from codeloop.tool.tool import ToolFailure
from tests.extend.mcp.world import world

TOOL = {"name": "add", "description": "", "inputSchema": {"type": "object", "properties": {}}}


class Limited(BaseHTTPRequestHandler):
    """A server that lists a tool and refuses each call of it."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked = asked
        match asked["method"]:
            case "initialize":
                version = asked["params"]["protocolVersion"]
                server = {"name": "limited", "version": "1"}
                body = {
                    "protocolVersion": version,
                    "capabilities": {"tools": {}},
                    "serverInfo": server,
                }
            case "tools/list":
                body = {"tools": [TOOL]}
            case "tools/call":
                self._send(429, b'{"error": "slow down"}')
                return
            case _:
                self._send(202, b"")
                return
        self._send(200, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": body}).encode())

    def do_GET(self) -> None:
        self._send(405, b"")

    def do_DELETE(self) -> None:
        self._send(405, b"")

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if status == 429:
            self.send_header("retry-after", "7 seconds")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: Any, **_named: Any) -> None:
        pass


@contextmanager
def serving(kind: type[Limited]) -> Generator[str]:
    """Run a server; yields its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def limited() -> Generator[str]:
    with serving(Limited) as url:
        yield url


async def test_a_refused_call_names_the_status_and_the_wait(tmp_path: Path, limited: str) -> None:
    async with world(tmp_path, {"p": {"type": "remote", "url": limited}}) as it:
        with pytest.raises(ToolFailure, match="429 Too Many Requests, and asks to wait 7 s"):
            await it.call("add")


ANSWER = """: kept alive

event: message
data: {"jsonrpc": "2.0", "id": ID, "result": {"content": [
data: {"type": "text", "text": "one"},
data: {"id": 5, "name": "x"},
data: {"type": "text", "text": "t\\ud83d"}
data: ]}}

"""


class Streaming(Limited):
    """A server whose answer to a call is an event of several lines."""

    def _send(self, status: int, body: bytes) -> None:
        if status != 429:
            super()._send(status, body)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(ANSWER.replace("ID", str(self.asked["id"])).encode())
        self.close_connection = True


async def test_an_event_of_several_lines_is_repaired_as_one_message(tmp_path: Path) -> None:
    with serving(Streaming) as url:
        entry = {"type": "remote", "url": url}
        async with world(tmp_path, {"p": entry}) as it:
            output = (await it.call("add")).output
    assert output.startswith("one\n")
    assert '{"id":5,"name":"x"}' in output
    assert output.endswith("t\ufffd")
