"""An editor that speaks the Agent Client Protocol with the real program,
and checks every message that comes.
"""

import json
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, Self

import pytest

from tests.cli.program import Desk
from tests.support.acp import check_answer, check_error, check_request


class Editor:
    """An editor: asks, answers what it is asked with `decide`, and keeps the updates."""

    def __init__(self, process: subprocess.Popen[str], decide: Callable[[str, Any], Any]) -> None:
        self.process = process
        self.decide = decide
        self.updates: list[dict[str, Any]] = []
        self.asked: list[tuple[str, Any]] = []
        self.cancelled: list[int] = []
        self.answers: dict[int | None, Any] = {}
        self.batches: list[list[dict[str, Any]]] = []
        """Answers to batches of requests."""
        self.version = 1
        """Of the protocol, in which every message that comes is checked."""
        self._sent: dict[int, str] = {}
        self._last = 0
        self._coming: SimpleQueue[dict[str, Any] | list[dict[str, Any]] | None] = SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def send(self, method: str, **params: Any) -> int:
        """Send a request without waiting for its answer."""
        self._last += 1
        self._sent[self._last] = method
        self.write({"id": self._last, "method": method, "params": params})
        return self._last

    def notify(self, method: str, **params: Any) -> None:
        self.write({"method": method, "params": params})

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request and return its result; an error as it is."""
        return self.answer_to(self.send(method, **params))

    def answer_to(self, number: int) -> Any:
        while number not in self.answers:
            self.take()
        return self.answers.pop(number)

    def until(self, holds: Callable[[], Any]) -> None:
        while not holds():
            self.take()

    def take(self) -> None:
        """Take the next message."""
        try:
            message = self._coming.get(timeout=60)
        except Empty:
            pytest.fail(f"nothing came for a minute; updates: {self.updates[-5:]}")
        assert message is not None, f"it ended: {self.process.poll()}"
        if isinstance(message, list):
            self.batches.append(message)
            return
        assert message["jsonrpc"] == "2.0"
        method = message.get("method")
        if "error" in message:
            check_error(self.version, message["error"])
        elif method is None:
            check_answer(self.version, self._sent[message["id"]], message["result"])
        else:
            check_request(self.version, method, message.get("params"))
        if method is None:
            self.answers[message["id"]] = message.get("result", message.get("error"))
        elif method == "session/update":
            self.updates.append(message["params"]["update"])
        elif method == "$/cancel_request":
            self.cancelled.append(message["params"]["requestId"])
        else:
            self.asked.append((method, message["params"]))
            if (result := self.decide(method, message["params"])) is not None:
                self.write({"id": message["id"], "result": result})

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def begin(self, desk: Desk, **capabilities: Any) -> dict[str, Any]:
        """Greet, and open a session in the project."""
        greeting = self.greet(**capabilities)
        assert greeting["agentInfo" if self.version == 1 else "info"]["name"] == "codeloop"
        opened = self.ask("session/new", cwd=str(desk.work), mcpServers=[])
        assert "sessionId" in opened, opened
        return opened

    def greet(self, **capabilities: Any) -> dict[str, Any]:
        """Say what the editor speaks and can do."""
        if self.version == 1:
            return self.ask("initialize", protocolVersion=1, clientCapabilities=capabilities)
        info = {"name": "editor", "version": "1"}
        return self.ask("initialize", protocolVersion=2, info=info, capabilities=capabilities)

    def texts(self, kind: str = "agent_message_chunk") -> str:
        return "".join(
            each["content"]["text"] for each in self.updates if each["sessionUpdate"] == kind
        )

    def calls(self, tool: str, at: int = 0) -> dict[str, Any]:
        """Return the last state of a call of a tool, merged as an editor does; `at`: which one."""
        known: dict[str, dict[str, Any]] = {}
        for each in self.updates:
            if each["sessionUpdate"] in {"tool_call", "tool_call_update"}:
                known[each["toolCallId"]] = {**known.get(each["toolCallId"], {}), **each}
        return [each for each in known.values() if each["name"] == tool][at]

    def last(self, kind: str) -> dict[str, Any]:
        return [each for each in self.updates if each["sessionUpdate"] == kind][-1]

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._coming.put(json.loads(line))
        self._coming.put(None)


def choose(option: str) -> Callable[[str, Any], Any]:
    """Return an editor's user who always chooses the same option."""

    def decide(method: str, _params: Any) -> Any:
        assert method == "session/request_permission"
        return {"outcome": {"outcome": "selected", "optionId": option}}

    return decide


@contextmanager
def editing(
    desk: Desk, decide: Callable[[str, Any], Any] = lambda *_: None, *flags: str
) -> Generator[Editor]:
    """Start the program for an editor; with `--protocol 2`, the editor speaks the draft."""
    pipe = subprocess.PIPE
    command = [*desk.command, "acp", *flags]
    process = subprocess.Popen(
        command, **desk.options(), stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )
    with Editor(process, decide) as editor:
        editor.version = 2 if "--protocol" in flags else 1
        yield editor


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]
