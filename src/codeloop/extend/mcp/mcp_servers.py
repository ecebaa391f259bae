"""The MCP servers of a project, with their sandboxes and sign-ins.
Imported when the first server is needed.
"""

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from codeloop.extend.mcp.cache.listing import Listing
from codeloop.extend.mcp.cache.table import McpTable
from codeloop.extend.mcp.consent import Approvals
from codeloop.extend.mcp.definition import LocalDefinition, ServerDefinition
from codeloop.extend.mcp.mcp_server import McpServer, ServerRecords
from codeloop.extend.mcp.sign_in.background_sign_in import BackgroundSignIn
from codeloop.extend.mcp.sign_in.login import ShowAddress, WaitForPaste, sign_in
from codeloop.extend.mcp.sign_in.tokens import get_sign_ins, make_auth, sign_out
from codeloop.extend.mcp.transport.failures import RegistrationNeeded, ServerFailed, SignInNeeded
from codeloop.extend.mcp.transport.server_launch import ServerProject
from codeloop.extend.mcp.transport.transports import ServerDependencies
from codeloop.workspace.process.program_log import ProgramLog
from codeloop.workspace.process.program_sandboxes import ProgramSandboxes

if TYPE_CHECKING:
    import httpx2


class McpServers:
    """The servers of a project by name. `close` ends them,
    and every process that they have started.
    """

    def __init__(self, table: McpTable) -> None:
        self.table = table
        project, workspace = table.project, table.project.workspace
        self.sign_ins = get_sign_ins(project.paths)
        self.program_sandboxes = ProgramSandboxes(workspace, project.warn, "MCP servers")
        self._sign_ins_by_server: dict[str, BackgroundSignIn] = {}
        folders = ServerProject(
            workspace.directory, workspace.root, project.is_trusted, workspace.sandbox
        )
        self._dependencies = ServerDependencies(
            project=folders,
            environment=workspace.environment,
            get_server_folder=project.get_server_folder,
            program_sandboxes=self.program_sandboxes,
            make_auth=self._make_auth,
        )
        self.by_name = {
            name: self._make_server(definition) for name, definition in table.definitions.items()
        }

    @property
    def is_busy(self) -> bool:
        """Whether any server is being started."""
        return any(server.status.state == "starting" for server in self.by_name.values())

    @property
    def listings(self) -> dict[str, Listing]:
        """The known and approved listings by server name."""
        return {
            name: server.listing
            for name, server in self.by_name.items()
            if server.listing is not None
        }

    async def add(self, definition: ServerDefinition) -> McpServer:
        """Add a server, or replace the definition of one; it is not connected yet."""
        before = self.by_name.get(definition.name)
        # The old program must not go on with a definition that is no longer in effect.
        if before is not None:
            await before.disconnect()
        self.table.definitions[definition.name] = definition
        server = self.by_name[definition.name] = self._make_server(definition)
        return server

    async def rest(self) -> None:
        """End the programs that wait for a next call, which starts them again.

        Connections to other machines stay: they may bring news of a resource.
        """
        for server in self.by_name.values():
            is_program = isinstance(server.definition.config, LocalDefinition)
            if is_program and server.is_running and server.status.state != "starting":
                await server.disconnect()
        await self.program_sandboxes.rest()

    async def close(self) -> None:
        """End them all."""
        # First the sign-ins: the end of one connects its server.
        await asyncio.gather(*(each.close() for each in self._sign_ins_by_server.values()))
        await asyncio.gather(*(server.disconnect() for server in self.by_name.values()))
        await self.program_sandboxes.close()

    def _make_auth(self, definition: ServerDefinition) -> "httpx2.Auth | None":
        return make_auth(definition, self.sign_ins)

    def begin_sign_in(self, server: McpServer) -> BackgroundSignIn:
        """Return the running sign-in at a server, starting one if needed.
        At its end, it connects the server.
        """
        running = self._sign_ins_by_server.get(server.name)
        if running is None or running.is_over:
            running = self._sign_ins_by_server[server.name] = BackgroundSignIn(
                partial(self._sign_in, server)
            )
        return running

    def get_sign_in(self, server: McpServer) -> BackgroundSignIn | None:
        """Return the latest sign-in at a server, which may have ended."""
        return self._sign_ins_by_server.get(server.name)

    async def sign_out(self, server: McpServer) -> str | None:
        """Remove the sign-in at a server; return the outcome as text, None without a sign-in.
        Raises CodeloopError.
        """
        running = self._sign_ins_by_server.pop(server.name, None)
        if running is not None:
            await running.close()
        outcome = await sign_out(server.definition, self.sign_ins)
        if outcome is not None:
            await server.disconnect()
            server.fail(SignInNeeded("it wants you to sign in", can_sign_in=True))
        return outcome

    async def _sign_in(self, server: McpServer, show: ShowAddress, paste: WaitForPaste) -> None:
        try:
            await sign_in(server.definition, self.sign_ins, show, paste, server.challenge)
        except RegistrationNeeded as error:
            server.fail(error)
            raise
        server.is_off = False
        # If this fails, the server's status says why.
        with suppress(ServerFailed):
            await server.connect()

    def _make_server(self, definition: ServerDefinition) -> McpServer:
        project = self.table.project
        records = ServerRecords(project.listings, Approvals(project.known_file), project.failures)
        log = ProgramLog(project.get_log_path(definition.name))
        return McpServer(
            definition, self._dependencies, records, log, partial(project.tell, definition.name)
        )
