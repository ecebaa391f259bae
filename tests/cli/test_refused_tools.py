"""A service refuses a tool of an MCP server: the session goes on without it, and names it."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.program import Desk, call, serving
from tests.support.answers import Answer
from tests.support.http_connection import ReceivedRequest

SERVER = r"""
import json, sys
GOOD = {"type": "object", "properties": {"$filter": {"type": "string"}}}
TOOLS = [{"name": "good", "inputSchema": GOOD}, {"name": "bad"}, {"name": "broken", "inputSchema": []}]
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    result = {}
    if method == "initialize":
        about = {"serverInfo": {"name": "x"}, "capabilities": {"tools": {}}}
        result = {"protocolVersion": "2025-06-18", **about}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        given = json.dumps(message["params"]["arguments"])
        result = {"content": [{"type": "text", "text": "got " + given + " \ud83d"}]}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def answer(request: ReceivedRequest) -> Answer:
    """Refuse the bad tool by its place, as Anthropic does; else call the good one, once."""
    body = json.loads(request.body)
    names = [tool["name"] for tool in body.get("tools", ())]
    if "odd_bad" in names:
        message = f"tools.{names.index('odd_bad')}.custom.input_schema: JSON schema is invalid"
        error = {"type": "invalid_request_error", "message": message}
        return Answer(status=400, body=json.dumps({"type": "error", "error": error}))
    if "tool_result" in json.dumps(body["messages"]):
        return Answer(text="Done.")
    return call("odd_good", filter="a")


@pytest.mark.slow
def test_a_session_goes_on_without_a_tool_that_the_service_refuses(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    program = tmp_path / "server" / "odd.py"
    program.parent.mkdir()
    program.write_text(SERVER)
    command = [sys.executable, str(program)]
    with serving(answer) as model:
        desk.use(
            model,
            protocol="anthropic",
            mcp={"odd": {"type": "local", "command": command, "sandbox": False}},
            permission={"*": "allow"},
        )
        listed = desk.run("mcp", "debug", "odd")
        assert "its tool broken can't be used: its inputSchema is no object" in listed.stdout
        done = desk.run("run", "go")
        assert done.stdout.strip() == "Done.", done.stderr
        result = json.dumps(json.loads(model.requests[-1].body)["messages"])
    assert "The tool odd_bad of the MCP server odd is left out from now on" in done.stderr
    assert "tools." in done.stderr
    assert json.dumps(json.dumps({"$filter": "a"}))[1:-1] in result
    assert "\\ufffd" in result
