"""The protocol between codeloop and a host of extensions, version 1,
as checks that every host passes.

A host comes with two extensions written in its language, which behave as `Extensions` says.
"""

import json
import os
import socket
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Message = dict[str, Any]

OPERATIONS = [["session.list", "GET", "/session"], ["session.get", "GET", "/session/{sessionID}"]]
CALL_CONTEXT = {"sessionID": "ses_1", "messageID": "msg_1", "callID": "call_1", "agent": "build"}
TIMEOUT_SECONDS = 60
LONG_OUTPUT_CHARACTERS = 60_000_000


@dataclass(frozen=True, slots=True)
class Extensions:
    """Two extensions of a host's language.

    `tools`, a tool file: `greet(name, times=1)` reports the title "greeting", asks for the
    permission "greet" with the name as pattern, and returns "hello NAME xTIMES in DIRECTORY";
    `waits` never ends; `structured` prints a line that looks like a message and returns the title
    "T", the output "O" and the metadata {"x": 1}; `fails` raises "broken";
    `long` returns 60 million characters.

    `plugin`: its hook `tool.execute.before` raises "not this one" for the tool "bad", else sets
    `args.seen` to the result of the operation `session.list`; its hook `event` accepts every event;
    its tool `look` returns the result of the operation `session.get` for `ses_1`.
    """

    tools: Path
    plugin: Path
    prefix: str = ""
    """The prefix of the names of the tools in the tool file."""


@dataclass
class Host:
    """A host process, and the connection to it."""

    command: Sequence[str]
    directory: Path
    heard: list[Message] = field(default_factory=list[Message])
    """The messages that the host sent before the answers that were waited for."""

    def __enter__(self) -> Self:
        ours, theirs = socket.socketpair()
        ours.settimeout(TIMEOUT_SECONDS)
        with theirs:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.directory,
                env={**os.environ, "CODELOOP_HOST_FD": str(theirs.fileno())},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        self.socket = ours
        self.lines = ours.makefile("rb")
        self.last = 0
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.lines.close()
        self.socket.close()
        try:
            self.said, _ = self.process.communicate(timeout=TIMEOUT_SECONDS)
        finally:
            self.process.kill()
            self.process.wait()

    def send(self, **message: Any) -> None:
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def read(self) -> Message:
        line = self.lines.readline()
        assert line, "the host ended"
        return json.loads(line)

    def start(self, **message: Any) -> int:
        self.last += 1
        self.send(id=self.last, **message)
        return self.last

    def answer(self, number: int) -> Message:
        """Read until a message is answered. Meanwhile, allow permissions,
        and answer operations with their names.
        """
        while True:
            message = self.read()
            if message["type"] in {"result", "error"} and message["id"] == number:
                return message
            self.heard.append(message)
            if message["type"] == "ask":
                self.send(type="result", id=message["id"], value=None)
            elif message["type"] == "operation":
                self.send(
                    type="result",
                    id=message["id"],
                    value=[message["operation"], message.get("path")],
                )

    def ask(self, **message: Any) -> Message:
        return self.answer(self.start(**message))

    def value(self, **message: Any) -> Any:
        answered = self.ask(**message)
        assert answered["type"] == "result", answered
        return answered["value"]

    def greet(self) -> Message:
        directory = str(self.directory)
        project = {"id": "p", "worktree": directory}
        self.send(
            type="hello",
            version=1,
            directory=directory,
            root=directory,
            project=project,
            operations=OPERATIONS,
        )
        return self.read()

    def load(self, name: str, path: Path, kind: str) -> Any:
        extension = {"name": name, "path": str(path), "kind": kind, "options": None}
        return self.value(type="load", extension=extension)

    def call(self, extension: str, tool: str, arguments: Message) -> Message:
        context = {
            **CALL_CONTEXT,
            "directory": str(self.directory),
            "worktree": str(self.directory),
        }
        return {
            "type": "call",
            "extension": extension,
            "tool": tool,
            "arguments": arguments,
            "context": context,
        }

    def before(self, tool: str) -> Message:
        return {
            "type": "hook",
            "extension": "plugin",
            "name": "tool.execute.before",
            "input": {"tool": tool, "sessionID": "ses_1", "callID": "call_1"},
            "output": {"args": {}},
        }


def _load_extensions(host: Host, extensions: Extensions) -> None:
    assert host.greet()["type"] == "ready"
    host.load("tools", extensions.tools, "tool")
    host.load("plugin", extensions.plugin, "plugin")


def check_greeting(host: Host, extensions: Extensions) -> None:
    ready = host.greet()
    assert (ready["type"], ready["version"]) == ("ready", 1)
    assert ready["runtime"]


def check_tool_descriptions(host: Host, extensions: Extensions) -> None:
    host.greet()
    told = host.load("tools", extensions.tools, "tool")
    tools = {tool["name"]: tool for tool in told["tools"]}
    assert set(tools) == {
        extensions.prefix + name for name in ("greet", "waits", "structured", "fails", "long")
    }
    parameters = tools[extensions.prefix + "greet"]["parameters"]
    assert parameters["type"] == "object"
    assert parameters["properties"]["name"]["type"] == "string"
    assert parameters["required"] == ["name"]
    assert tools[extensions.prefix + "greet"]["description"] == "Greet somebody."


def check_hook_descriptions(host: Host, extensions: Extensions) -> None:
    host.greet()
    told = host.load("plugin", extensions.plugin, "plugin")
    assert {hook["name"] for hook in told["hooks"]} == {"event", "tool.execute.before"}
    assert [tool["name"] for tool in told["tools"]] == ["look"]


def check_load_error(host: Host, extensions: Extensions) -> None:
    host.greet()
    missing = extensions.tools.with_name("missing" + extensions.tools.suffix)
    extension = {"name": "m", "path": str(missing), "kind": "tool", "options": None}
    answered = host.ask(type="load", extension=extension)
    assert answered["type"] == "error"
    assert "missing" in answered["message"]


def check_tool_call(host: Host, extensions: Extensions) -> None:
    _load_extensions(host, extensions)
    given = host.value(**host.call("tools", extensions.prefix + "greet", {"name": "Ann"}))
    assert given["output"] == f"hello Ann x1 in {host.directory}"
    number = host.last
    (report,) = [message for message in host.heard if message["type"] == "report"]
    assert (report["call"], report["title"]) == (number, "greeting")
    (asked,) = [message for message in host.heard if message["type"] == "ask"]
    assert (asked["call"], asked["permission"], asked["patterns"]) == (number, "greet", ["Ann"])


def check_refused_permission(host: Host, extensions: Extensions) -> None:
    _load_extensions(host, extensions)
    number = host.start(**host.call("tools", extensions.prefix + "greet", {"name": "Ann"}))
    while (message := host.read())["type"] != "ask":
        pass
    host.send(type="error", id=message["id"], kind="raised", message="the person said no")
    answered = host.answer(number)
    assert answered["type"] == "error"
    assert "the person said no" in answered["message"]


def check_wrong_arguments(host: Host, extensions: Extensions) -> None:
    _load_extensions(host, extensions)
    answered = host.ask(**host.call("tools", extensions.prefix + "greet", {"name": 5}))
    assert (answered["type"], answered["kind"]) == ("error", "invalid")
    assert "name" in answered["message"]


def check_structured_result(host: Host, extensions: Extensions) -> None:
    _load_extensions(host, extensions)
    given = host.value(**host.call("tools", extensions.prefix + "structured", {}))
    assert (given["title"], given["output"], given["metadata"]) == ("T", "O", {"x": 1})


def check_errors(host: Host, extensions: Extensions) -> None:
    _load_extensions(host, extensions)
    answered = host.ask(**host.call("tools", extensions.prefix + "fails", {}))
    assert (answered["type"], answered["kind"]) == ("error", "raised")
    assert "broken" in answered["message"]
    for wrong in (("tools", "nothing"), ("nothing", "greet")):
        answered = host.ask(**host.call(*wrong, {}))
        assert (answered["type"], answered["kind"]) == ("error", "missing")


def check_cancellation(host: Host, extensions: Extensions) -> None:
    _load_extensions(host, extensions)
    number = host.start(**host.call("tools", extensions.prefix + "waits", {}))
    assert host.value(**host.before("good"))
    host.send(type="cancel", id=number)
    assert host.answer(number)["type"] == "error"


def check_line_limit(host: Host, extensions: Extensions) -> None:
    _load_extensions(host, extensions)
    answered = host.ask(**host.call("tools", extensions.prefix + "long", {}))
    assert (answered["type"], answered["kind"]) == ("error", "invalid")
    assert "50000000" in answered["message"].replace(",", "").replace("_", "")
    assert host.value(**host.before("good"))


def check_hooks(host: Host, extensions: Extensions) -> None:
    _load_extensions(host, extensions)
    assert host.value(**host.before("good"))["args"]["seen"][0] == "session.list"
    refused = host.ask(**host.before("bad"))
    assert (refused["type"], refused["kind"]) == ("error", "raised")
    assert "not this one" in refused["message"]


def check_operations(host: Host, extensions: Extensions) -> None:
    _load_extensions(host, extensions)
    given = host.value(**host.call("plugin", "look", {}))
    assert json.loads(given["output"]) == ["session.get", {"sessionID": "ses_1"}]


def check_events(host: Host, extensions: Extensions) -> None:
    _load_extensions(host, extensions)
    taken = 0
    for _ in range(20):
        host.send(type="events", events=[{"type": "message.part.delta", "properties": {}}] * 100)
    while taken < 2000:
        message = host.read()
        taken += message["count"] if message["type"] == "taken" else 0
    assert taken == 2000


def check_end(host: Host, extensions: Extensions) -> None:
    _load_extensions(host, extensions)
    host.start(**host.call("tools", extensions.prefix + "waits", {}))
    host.lines.close()
    host.socket.close()
    assert host.process.wait(TIMEOUT_SECONDS) is not None


CONTRACT: tuple[Callable[[Host, Extensions], None], ...] = (
    check_greeting,
    check_tool_descriptions,
    check_hook_descriptions,
    check_load_error,
    check_tool_call,
    check_refused_permission,
    check_wrong_arguments,
    check_structured_result,
    check_errors,
    check_cancellation,
    check_line_limit,
    check_hooks,
    check_operations,
    check_events,
    check_end,
)
