"""The whole terminal UI without a terminal, over a real project whose model is a script."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from codeloop.client.client import Client
from codeloop.client.target import Target
from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.api.session_requests import SESSION_CREATE, CreateSession
from codeloop.schema.message import Session
from codeloop.tui.app import TerminalUI
from codeloop.tui.settings.ui_launch import AskTrust, UiLaunch
from codeloop.tui.start import create_ui
from tests.support.scripted_project import ScriptedProject


class Played:
    """The UI, and ways to use it as a user does."""

    def __init__(self, ui: TerminalUI, pilot: Pilot[int]) -> None:
        self.ui = ui
        self.pilot = pilot

    def screen(self) -> str:
        """Return the text on the screen, without blanks at the ends of its rows."""
        strips = self.ui.screen._compositor.render_strips()
        return "\n".join(
            "".join(segment.text for segment in strip).rstrip() for strip in strips
        ).rstrip()

    async def type(self, text: str, *keys: str) -> None:
        """Type a text, then press keys."""
        names = {
            " ": "space",
            "/": "slash",
            ".": "full_stop",
            "\n": "ctrl+j",
            "!": "exclamation_mark",
            "-": "minus",
        }
        await self.pilot.press(*(names.get(char, char) for char in text), *keys)

    async def click(self, words: str) -> None:
        """Click on some words, the lowest on the screen."""
        rows = self.screen().split("\n")
        row = next(at for at in range(len(rows) - 1, -1, -1) if words in rows[at])
        await self.pilot.click(offset=(rows[row].index(words) + 1, row))

    async def until(self, ready: Callable[[], object], most: float = 60) -> None:
        """Wait for something to be on the screen or true."""
        waited = 0.0
        while not ready():
            assert waited < most, f"it never came:\n{self.screen()}"
            await self.pilot.pause(0.02)
            waited += 0.02
        await self.pilot.pause()

    async def sees(self, *texts: str) -> None:
        """Wait until texts are on the screen."""
        await self.until(lambda: all(text in self.screen() for text in texts))

    async def answered(self, *texts: str) -> None:
        """Wait until texts are on the screen and their turn is over, which it is later: before,
        nothing is undone.
        """
        await self.sees(*texts)
        await self.until(lambda: self.ui.tab.view is not None and not self.ui.tab.view.is_busy)


@asynccontextmanager
async def played(
    rig: ScriptedProject,
    state: Path,
    *,
    session: Session | None = None,
    size: tuple[int, int] = (80, 24),
    settings: tuple[Path, ...] = (),
    opening: asyncio.Event | None = None,
    **launch: Any,
) -> AsyncGenerator[Played]:
    """Run the UI over a project; `session`: the one to resume,
    `opening`: what the project's opening waits for.
    """

    def attachment(path: Path) -> FilePartInput:
        return FilePartInput(mime="text/plain", url=path.as_uri())

    @asynccontextmanager
    async def opened(_ask: AskTrust) -> AsyncGenerator[Target]:
        if opening is not None:
            await opening.wait()
        yield Target(rig.client, str(rig.work), lambda _session: rig.client, attachment)

    async def chosen(_target: Target) -> Session | None:
        return session

    async def created(client: Client) -> Session:
        return await client.call(SESSION_CREATE, CreateSession())

    patient = state.parent / "patient.json"
    patient.write_text('{"leader_timeout": 60000}')  # a busy machine is slower than a user
    ui = create_ui(
        UiLaunch(
            open_project=opened,
            choose_session=chosen,
            create_session=created,
            directory=str(rig.work),
            state_folder=state,
            settings_files=(patient, *settings),
            **launch,
        )
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codeloop.tui.keys.repeated_key.CONFIRMATION_SECONDS", 60.0)
        for module in ("keys.key_order", "keys.key_dispatcher", "dialogs.parts.dialog"):
            patch.setattr(f"codeloop.tui.{module}.MAX_HOLD_SECONDS", 60.0)
        async with ui.run_test(size=size) as pilot:
            await pilot.pause()
            shown = Played(ui, pilot)
            if opening is None:
                await shown.until(ui.opened_event.is_set)
            yield shown
    await ui.wait_for_close()
