"""The MCP servers: their states and reasons, connected and disconnected, and signing in."""

import asyncio
import re
from pathlib import Path

import pytest
from textual.widgets import Input

from tests.app.handlers.project.test_mcp import FAILS, WORKS
from tests.extend.mcp.remote import led_to, opened, serving
from tests.support.scripted_project import open_scripted_project
from tests.tui.app.running_ui import Played, played


def address(ui: Played) -> str:
    """Return the address that is shown, which may stand in several rows."""
    shown = "".join(line.strip() for line in ui.screen().splitlines())
    found = re.search(r"http://\S+?(?=If that browser)", shown)
    assert found, ui.screen()
    return found[0]


@pytest.mark.slow
async def test_servers_are_listed_connected_and_signed_in_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with serving("oauth", str(tmp_path)) as url:
        servers = {"plain": WORKS, "fails": FAILS, "remote": {"type": "remote", "url": url}}
        async with (
            open_scripted_project(tmp_path, [], mcp=servers) as desk,
            played(desk, tmp_path / "state", size=(100, 30)) as ui,
        ):
            await ui.type("/mcp", "enter")
            await ui.sees("MCP servers", "plain   not looked at yet", "ctrl+k sign in")
            await ui.pilot.press("enter")
            await ui.sees("● plain   connected")
            await ui.pilot.press("ctrl+d")
            await ui.sees("plain   disabled")
            await ui.pilot.press("down", "enter")
            await ui.sees("fails   failed: it ended with exit code 1")
            await ui.pilot.press("down", "enter")
            await ui.sees("remote  wants you to sign in")
            await ui.pilot.press("enter")
            await ui.sees("Sign in at remote", "ctrl+y copy the address")
            where = await asyncio.to_thread(led_to, address(ui))
            ui.ui.screen.query_one(Input).insert_text_at_cursor(where)  # as a paste does
            await ui.pilot.press("enter")
            await ui.sees("● remote  connected")
            await ui.pilot.press("ctrl+o", "y")
            await ui.sees("remote  wants you to sign in")
            await ui.pilot.press("ctrl+k")
            await ui.sees("Sign in at remote")
            # The browser of this machine: nothing has to be pasted.
            await asyncio.to_thread(opened, address(ui))
            await ui.sees("● remote  connected")
