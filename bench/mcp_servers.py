"""What MCP servers cost: configured and remembered ones, a call, and the first call, which starts the server."""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from bench import script
from bench.figures import Bench
from bench.measure import Command, Failed, run
from bench.subject import CODELOOP, Place
from codeloop.config.paths import Paths, find_paths
from codeloop.extend.mcp.cache.definition import parse_definition, parse_definitions
from codeloop.extend.mcp.cache.listing import Listings
from codeloop.extend.mcp.cache.table import McpProject, McpTable
from codeloop.workspace.workspace import Workspace

SERVERS, CALLS = 10, 300
GREETING = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
PROGRAM = """
import json, sys

def answer(method):
    if method == "initialize":
        about = {"name": "bench", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        text = {"type": "string", "description": "What is said again, word for word."}
        schema = {"type": "object", "properties": {"text": text}, "required": ["text"]}
        about = "Say a text again. It is of use when one wants to know whether this server answers."
        return {"tools": [{"name": f"echo{n}", "description": about, "inputSchema": schema} for n in range(10)]}
    return {"content": [{"type": "text", "text": "again"}]}

for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        known = asked["method"] in ("initialize", "tools/list", "tools/call")
        said = {"result": answer(asked["method"])} if known else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
"""
"""A server of ten tools and the standard library: what it takes is little, and the same for everybody."""
COMMAND = [sys.executable, "-c", PROGRAM]
ENTRIES: dict[str, Any] = {
    f"s{number}": {"type": "local", "command": COMMAND, "environment": {"NUMBER": str(number)}}
    for number in range(SERVERS)
}


def mcp_servers(bench: Bench) -> None:
    """Measure runs with ten remembered servers over one without, the first call of a run, and calls in a row."""
    for place in bench.places:
        if place.subject.name == "codeloop":
            _runs(bench, place)
            bench.put(place, "mcp-call", statistics.median(_overheads(bench)))


def _runs(bench: Bench, place: Place) -> None:
    answer = script.write(bench.folder / "mcp-answer.jsonl")
    call = script.write(bench.folder / "mcp-call.jsonl", [("s0_echo0", {"text": "x"})])
    plain = place.fill(place.subject.scripted, script=answer)
    home = place.home / "with-servers"
    config = home / "config" / "codeloop.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"mcp": ENTRIES}))
    environ = {**plain.environ, "CODELOOP_HOME": str(home)}
    run(Command((CODELOOP, "mcp", "debug", "s0"), place.project, environ))
    _remember(Listings(find_paths(environ).state / "mcp"))
    known = Command(plain.argv, plain.cwd, environ)
    called = Command(place.fill(place.subject.scripted, script=call).argv, plain.cwd, environ)
    found = bench.medians({"plain": plain, "known": known, "called": called})
    bench.put(place, "mcp-ten", found["known"].wall - found["plain"].wall)
    bench.put(place, "mcp-ten-cpu", found["known"].cpu - found["plain"].cpu)
    bench.put(place, "mcp-ten-memory", found["known"].memory - found["plain"].memory)
    own = statistics.median(_started() for _ in range(max(bench.rounds, 3)))
    bench.put(place, "mcp-first", found["called"].wall - found["known"].wall - own)


def _remember(listings: Listings) -> None:
    """Let all servers be known as the first is."""
    digests = [parse_definition(name, entry).digest for name, entry in ENTRIES.items()]
    listing = listings.get(digests[0])
    if listing is None:
        raise Failed("codeloop mcp debug left no listing behind")
    for digest in digests:
        listings.put(digest, listing)


def _started() -> float:
    """Return how long the server itself takes from its start until it has greeted and listed (ms)."""
    start = time.perf_counter()
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for number, (method, params) in enumerate((("initialize", GREETING), ("tools/list", {}))):
            asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(asked).encode() + b"\n")
            server.stdin.flush()
            server.stdout.readline()
        took = (time.perf_counter() - start) * 1000
        server.stdin.close()
    return took


def _overheads(bench: Bench) -> list[float]:
    """Return what each call takes over the same with the package's own client (ms), in one process, in turn."""
    folder = bench.folder / "mcp-call"
    folder.mkdir()
    return asyncio.run(_calls(find_paths({"CODELOOP_HOME": str(folder / "home"), "HOME": str(folder)}), folder))


async def _calls(paths: Paths, project: Path) -> list[float]:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    from codeloop.extend.mcp.mcp_servers import McpServers
    from codeloop.extend.mcp.tools.calls import send_call

    workspace = Workspace(project, project, paths.state / "scratch", dict(os.environ))
    served = McpProject(workspace, paths, paths.state / "logs", lambda _name: None, lambda _line: None, is_trusted=True)
    table = McpTable(parse_definitions(ENTRIES, {}), served, frozenset(), McpServers)
    server = table.running.by_name["s0"]
    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
    taken: list[float] = []
    try:
        await server.connect()
        async with Client(stdio_client(parameters), mode="legacy", cache=None) as bare:
            for number in range(CALLS):
                start = time.perf_counter()
                await bare.call_tool("echo0", {"text": "x"})
                between = time.perf_counter()
                await server.request(partial(send_call, "echo0", {"text": "x"}), None)
                if number >= CALLS // 10:
                    taken.append((time.perf_counter() - between - (between - start)) * 1000)
    finally:
        await table.close()
    return taken
