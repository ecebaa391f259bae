"""Measures MCP servers: runs with known ones, calls, and the first call,
which starts the server.
"""

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

from bench.bench_run import BenchRun
from bench.process_runner import Command, MeasurementFailed, run_command
from bench.replay_script import write_replay_script
from bench.subjects import CODELOOP, Installation
from codeloop.config.paths import Paths, find_paths
from codeloop.extend.mcp.cache.listing import Listings
from codeloop.extend.mcp.cache.table import McpProject, McpTable
from codeloop.extend.mcp.definition import parse_definition, parse_definitions
from codeloop.workspace.workspace import Workspace

SERVER_COUNT, CALL_COUNT = 10, 300
INITIALIZE_PARAMS = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
SERVER_PROGRAM = """
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
"""A server with ten tools. It needs only the standard library, so that its own time is short."""
SERVER_COMMAND = [sys.executable, "-c", SERVER_PROGRAM]
# The variable makes each of them another server,
# of which codeloop remembers the tools by themselves.
SERVER_CONFIGS: dict[str, Any] = {
    f"s{number}": {
        "type": "local",
        "command": SERVER_COMMAND,
        "environment": {"NUMBER": str(number)},
    }
    for number in range(SERVER_COUNT)
}


def measure_mcp_servers(bench: BenchRun) -> None:
    """Measure runs with ten known servers over one without, the first call of a run,
    and calls in a row.
    """
    _measure_runs(bench, bench.codeloop)
    bench.put_own("mcp-call", statistics.median(_measure_overheads(bench)))


def _measure_runs(bench: BenchRun, installation: Installation) -> None:
    answer = write_replay_script(bench.folder / "mcp-answer.jsonl")
    call = write_replay_script(bench.folder / "mcp-call.jsonl", [("s0_echo0", {"text": "x"})])
    plain = installation.fill(installation.subject.scripted, script=answer)
    home = installation.home / "with-servers"
    config = home / "config" / "codeloop.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"mcp": SERVER_CONFIGS}))
    environ = {**plain.environ, "CODELOOP_HOME": str(home)}
    run_command(Command((CODELOOP, "mcp", "debug", "s0"), installation.project, environ))
    _copy_listing(Listings(find_paths(environ).state / "mcp"))
    known = Command(plain.argv, plain.cwd, environ)
    called = Command(
        installation.fill(installation.subject.scripted, script=call).argv, plain.cwd, environ
    )
    medians = bench.measure_medians({"plain": plain, "known": known, "called": called})
    bench.put_own("mcp-ten", medians["known"].wall - medians["plain"].wall)
    bench.put_own("mcp-ten-cpu", medians["known"].cpu - medians["plain"].cpu)
    bench.put_own("mcp-ten-memory", medians["known"].memory - medians["plain"].memory)
    server_start = statistics.median(_time_server_start() for _ in range(max(bench.rounds, 3)))
    bench.put_own("mcp-first", medians["called"].wall - medians["known"].wall - server_start)


def _copy_listing(listings: Listings) -> None:
    """Store the tools of the first server as those of all servers, without starting them."""
    digests = [parse_definition(name, entry).digest for name, entry in SERVER_CONFIGS.items()]
    listing = listings.get(digests[0])
    if listing is None:
        raise MeasurementFailed("codeloop mcp debug left no listing behind")
    for digest in digests:
        listings.put(digest, listing)


def _time_server_start() -> float:
    """Return the time of a server from its start until it has listed its tools, ms."""
    start = time.perf_counter()
    with subprocess.Popen(SERVER_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for number, (method, params) in enumerate(
            (("initialize", INITIALIZE_PARAMS), ("tools/list", {}))
        ):
            asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(asked).encode() + b"\n")
            server.stdin.flush()
            server.stdout.readline()
        milliseconds = (time.perf_counter() - start) * 1000
        server.stdin.close()
    return milliseconds


def _measure_overheads(bench: BenchRun) -> list[float]:
    """Return the time of each call over the same call by the client of the package `mcp`, ms."""
    folder = bench.folder / "mcp-call"
    folder.mkdir()
    return asyncio.run(
        _time_calls(
            find_paths({"CODELOOP_HOME": str(folder / "home"), "HOME": str(folder)}), folder
        )
    )


async def _time_calls(paths: Paths, project: Path) -> list[float]:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    from codeloop.extend.mcp.mcp_servers import McpServers
    from codeloop.extend.mcp.tools.calls import send_call

    workspace = Workspace(project, project, paths.state / "scratch", dict(os.environ))
    served = McpProject(
        workspace,
        paths,
        paths.state / "logs",
        lambda _name: None,
        lambda _line: None,
        is_trusted=True,
    )
    table = McpTable(parse_definitions(SERVER_CONFIGS, {}, {}), served, frozenset(), McpServers)
    server = table.running.by_name["s0"]
    parameters = StdioServerParameters(command=SERVER_COMMAND[0], args=SERVER_COMMAND[1:])
    times: list[float] = []
    try:
        await server.connect()
        async with Client(stdio_client(parameters), mode="legacy", cache=None) as bare:
            for number in range(CALL_COUNT):
                start = time.perf_counter()
                await bare.call_tool("echo0", {"text": "x"})
                between = time.perf_counter()
                await server.request(partial(send_call, "echo0", {"text": "x"}), None)
                # The first tenth warms up both clients.
                if number >= CALL_COUNT // 10:
                    times.append((time.perf_counter() - between - (between - start)) * 1000)
    finally:
        await table.close()
    return times
