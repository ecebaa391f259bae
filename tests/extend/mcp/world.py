"""A table of servers with a real context: calls are made as the toolbox makes them,
questions are recorded.
"""

import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from codeloop.config.paths import Paths, find_paths
from codeloop.extend.mcp.cache.table import McpProject, McpTable
from codeloop.extend.mcp.definition import parse_definitions
from codeloop.extend.mcp.mcp_server import McpServer
from codeloop.extend.mcp.mcp_servers import McpServers
from codeloop.extend.mcp.tools.server_tools import make_tools
from codeloop.schema.config import SandboxConfig
from codeloop.schema.limits import MCP_STOP
from codeloop.schema.wire import replace
from codeloop.tool.tool import ToolResult
from codeloop.tool.toolbox import InvalidToolCall, Toolbox
from codeloop.workspace.workspace import UNCONFINED, Workspace
from tests.tool.context import TestContext, make_context

PLAIN = Path(__file__).with_name("plain_server.py")


@dataclass
class World:
    """An open table. `changed`: the servers of which a change was told, in order."""

    table: McpTable
    ctx: TestContext
    traces: Path
    changed: list[str] = field(default_factory=list[str])

    @property
    def servers(self) -> McpServers:
        return self.table.running

    def server(self, name: str = "p") -> McpServer:
        return self.servers.by_name[name]

    @property
    def toolbox(self) -> Toolbox:
        return Toolbox(make_tools(self.table))

    async def call(self, tool: str, /, **given: Any) -> ToolResult:
        """Call a tool of the server `p` through the toolbox, having looked at what it offers."""
        if not self.table.cached_listings:
            await self.server().connect()
            self.table.__dict__.pop("remembered", None)
        prepared = self.toolbox.tools_by_name[f"p_{tool}"].implementation
        return await prepared.run(given, self.ctx)

    async def search(self, **given: Any) -> ToolResult:
        """Use the one tool."""
        import msgspec

        prepared = self.toolbox.prepare("mcp", msgspec.json.encode(given).decode())
        assert not isinstance(prepared, InvalidToolCall), prepared
        return await prepared.run(self.ctx)

    def started(self) -> int:
        """Return how often the plain server was started."""
        file = self.traces / "started"
        return len(file.read_text().split()) if file.exists() else 0


def plain(tmp_path: Path, **more: Any) -> dict[str, Any]:
    """Return the definition of the plain server, which leaves its traces in a folder."""
    traces = tmp_path / "traces"
    traces.mkdir(exist_ok=True)
    return {"type": "local", "command": [sys.executable, str(PLAIN), str(traces)], **more}


def paths_of(tmp_path: Path) -> Paths:
    """Return folders of our own in a temporary one."""
    return find_paths({"CODELOOP_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)})


@asynccontextmanager
async def world(
    tmp_path: Path,
    mcp: dict[str, Any] | None = None,
    change: Callable[[World], None] = lambda _: None,
    *,
    is_trusted: bool = True,
    sandbox: SandboxConfig = UNCONFINED,
    scopes: Mapping[str, str] = MappingProxyType({}),
) -> AsyncGenerator[World]:
    """Open the servers of `mcp` (default: the plain one as `p`);
    all of them have ended afterwards.
    """
    ctx = make_context(tmp_path)
    # Where a server may write is asked about in `test_ask_places.py`.
    ctx.session.is_attended = False
    at, own = ctx.workspace, paths_of(tmp_path).private_folders
    ctx.workspace = Workspace(at.root, at.directory, at.scratch, at.environment, sandbox, own)
    changed: list[str] = []
    project = McpProject(
        ctx.workspace,
        paths_of(tmp_path),
        tmp_path / "logs",
        changed.append,
        changed.append,
        is_trusted,
    )
    definitions = parse_definitions(mcp if mcp is not None else {"p": plain(tmp_path)}, scopes, {})
    found = World(
        McpTable(definitions, project, frozenset({"bash", "mcp"}), McpServers),
        ctx,
        tmp_path / "traces",
        changed,
    )
    change(found)
    with pytest.MonkeyPatch.context() as patch:
        # Where much else runs, a server may take long to start,
        # and the exit code of one that has ended may come late.
        for limit in ("MCP_START", "MCP_LIST", "MCP_STOP"):
            patch.setattr(
                f"codeloop.extend.mcp.transport.transports.{limit}", replace(MCP_STOP, value=60_000)
            )
        try:
            yield found
        finally:
            await found.table.close()
            ctx.store.close()
