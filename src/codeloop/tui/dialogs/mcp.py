"""The dialog of MCP servers: shows their states, connects and disconnects them,
signs in and out.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from codeloop.kit.asyncio_tasks import cancel_all
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.api.mcp import (
    MCP_AUTH_AUTHENTICATE,
    MCP_AUTH_CALLBACK,
    MCP_AUTH_REMOVE,
    MCP_AUTH_START,
    MCP_CONNECT,
    MCP_DISCONNECT,
    MCP_STATUS,
    McpAuthCode,
    McpName,
    MCPStatus,
)
from codeloop.schema.errors import CodeloopError
from codeloop.schema.operation import NoArguments
from codeloop.tui.dialogs.parts.confirm import Confirm
from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.dialogs.parts.pick import Pick, PickAction, PickSource
from codeloop.tui.dialogs.parts.sign_in_screen import SignInScreen
from codeloop.tui.dialogs.picker import Picker
from codeloop.tui.state.server_states import CONNECTING, HEALTH_COLOURS, ServerState, describe_mcp

_MAX_ROW_STATE = 50
"""Characters of a state that fit into a row; the reason of a longer one is
also shown below the list.
"""
PASTE_HINT = (
    "If that browser is on another machine, paste the address that it ends at, or the code in it."
)


class McpPicker(Picker[str]):
    """Lists the servers by name. Enter connects one, or signs in at it if that is needed."""

    def __init__(self, context: DialogContext) -> None:
        self._dialog_context = context
        self._statuses: dict[str, MCPStatus] = {}
        self._connecting: set[str] = set()
        source = PickSource(
            title="MCP servers",
            load=self._load_rows,
            actions=(
                PickAction("ctrl+d", "disconnect", self._disconnect),
                PickAction("ctrl+k", "sign in", self._sign_in),
                PickAction("ctrl+o", "sign out", self._sign_out),
            ),
            empty_message="No MCP server is configured. Add one: codeloop mcp add NAME -- COMMAND",
            choose_label="connect",
        )
        super().__init__(source, context.get_styles)

    async def _load_rows(self) -> Sequence[Pick[str]]:
        self._statuses = await self._dialog_context.client.call(MCP_STATUS, NoArguments())
        return [self._make_pick(name, status) for name, status in self._statuses.items()]

    def _make_pick(self, name: str, status: MCPStatus) -> Pick[str]:
        state = ServerState(CONNECTING) if name in self._connecting else describe_mcp(status)
        # A server of which only the tools are known counts as connected by `status`, too.
        mark = "●" if status.status == "connected" and status.state is None else ""
        colour = (
            HEALTH_COLOURS[state.health] if state.health in {"wanting", "bad"} else "text_muted"
        )
        detail = f"{state.words}: {state.reason}" if state.reason else state.words
        note = state.reason if len(detail) > _MAX_ROW_STATE else ""
        return Pick(name, name, detail, mark=mark, note=note, detail_colour=colour)

    def choose(self, value: str) -> None:
        """Connect a server in the background, or sign in at it; the list shows its progress."""
        wants_sign_in = self._statuses[value].status == "needs_auth"
        self._run_action(partial(self._sign_in if wants_sign_in else self._connect, value), value)

    def _run_action(self, action: Callable[[], Awaitable[bool]], server: str) -> None:
        async def run() -> None:
            try:
                await action()
            except CodeloopError as error:
                self.notify(escape_controls(str(error)), severity="error", timeout=15, markup=False)
            self.reload()

        # Exclusive by server: a second Enter restarts the attempt,
        # and other servers connect meanwhile.
        self.run_worker(run, exclusive=True, group=f"server {server}")

    async def _connect(self, name: str) -> bool:
        self._connecting.add(name)
        self.reload()
        try:
            return await self._dialog_context.client.call(MCP_CONNECT, McpName(name=name))
        finally:
            self._connecting.discard(name)

    async def _disconnect(self, name: str | None) -> bool:
        return name is not None and await self._dialog_context.client.call(
            MCP_DISCONNECT, McpName(name=name)
        )

    async def _sign_in(self, name: str | None) -> bool:
        """Open the sign-in page in a browser, or accept a pasted code when the browser
        is on another machine.
        """
        if name is None:
            return False
        client = self._dialog_context.client
        start = await client.call(MCP_AUTH_START, McpName(name=name))
        screen = SignInScreen(name, start.authorization_url, PASTE_HINT, self.get_styles)
        # Two ways end the sign-in: the browser reaches this machine, or the user pastes the code.
        sign_in = asyncio.create_task(client.call(MCP_AUTH_AUTHENTICATE, McpName(name=name)))

        def close_screen(task: asyncio.Task[MCPStatus]) -> None:
            # After an error the screen stays open: the code can still be pasted.
            if not task.cancelled() and task.exception() is None:
                screen.dismiss(None)

        sign_in.add_done_callback(close_screen)
        try:
            code = await self._dialog_context.ask(screen)
            if code:
                await client.call(MCP_AUTH_CALLBACK, McpAuthCode(name=name, code=code))
        finally:
            # Cancelled by the user, or no longer needed after a pasted code.
            await cancel_all([sign_in])
        return True

    async def _sign_out(self, name: str | None) -> bool:
        if name is None:
            return False
        text = "Its tools can't be called until you sign in again."
        if not await self._dialog_context.ask(
            Confirm("Sign out?", text, "sign out", self.get_styles)
        ):
            return False
        await self._dialog_context.client.call(MCP_AUTH_REMOVE, McpName(name=name))
        return True
