"""Plays the stored session: its parts come one after the other,
as they came from the model and the tools.
"""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.segment import Segment
from textual.pilot import Pilot
from textual.widgets import Input

from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.event import (
    Event,
    MessageInfo,
    MessageUpdated,
    PartInfo,
    PartUpdated,
    SessionInfo,
    SessionUpdated,
    Todos,
    TodoUpdated,
)
from codeloop.schema.live_events import (
    Busy,
    Idle,
    SessionIdle,
    SessionRef,
    SessionState,
    StatusChanged,
)
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import Part, ToolPart, ToolStart, ToolStateRunning
from codeloop.schema.wire import replace
from codeloop.tui.app import TerminalUI
from codeloop.tui.render.renderer import Renderer
from tests.tui.stored.client import StoredClient, stored_ui

NOW = 1_790_000_020.0
"""Seconds since the epoch, at which the clock stands still."""


class Stored:
    """The UI over what is stored."""

    def __init__(self, ui: TerminalUI, pilot: Pilot[int], client: StoredClient) -> None:
        self.ui = ui
        self.pilot = pilot
        self.client = client

    def lines(self) -> list[list[Segment]]:
        """Return what is on the screen."""
        return [list(strip) for strip in self.ui.screen._compositor.render_strips()]

    def text(self) -> str:
        """Return the text on the screen."""
        return "\n".join(
            "".join(segment.text for segment in line).rstrip() for line in self.lines()
        )

    async def settle(self, ready: Callable[[], object] | None = None) -> None:
        """Wait until something is ready and drawn."""
        waited = 0
        while (ready is not None and not ready()) or waited < 2:
            waited += 1
            assert waited < 6_000, self.text()
            await self.pilot.pause(0.01)

    async def sees(self, *texts: str) -> None:
        """Wait until texts are on the screen."""
        await self.settle(lambda: all(text in self.text() for text in texts))

    async def steady(self) -> list[list[Segment]]:
        """Return what is on the screen once it stays as it is."""
        before, same = self.lines(), 0
        while same < 3:
            await self.pilot.pause(0.02)
            now = self.lines()
            before, same = now, same + 1 if now == before else 0
        return before

    def say(self, *events: Event) -> None:
        """Let the UI hear events."""
        for event in events:
            self.client.say(event)

    def message(self, message: MessageWithParts, parts: Sequence[Part] | None = None) -> None:
        """Let a message come, with its parts or these of them."""
        session = self.client.main
        info = message.info
        if parts is not None and isinstance(info, AssistantMessage):
            info = replace(info, time=replace(info.time, completed=None))
        self.say(MessageUpdated(properties=MessageInfo(session_id=session, info=info)))
        for part in message.parts if parts is None else parts:
            self.say(PartUpdated(properties=PartInfo(session_id=session, part=part, time=0)))

    def is_busy(self, *, busy: bool) -> None:
        """Let a turn begin or end."""
        status = Busy() if busy else Idle()
        self.say(StatusChanged(properties=SessionState(session_id=self.client.main, status=status)))
        if not busy:
            self.say(SessionIdle(properties=SessionRef(session_id=self.client.main)))

    def todos(self, todos: Any) -> None:
        """Let the list of tasks change."""
        self.say(TodoUpdated(properties=Todos(session_id=self.client.main, todos=todos)))

    def session(self, **changed: Any) -> None:
        """Let the session change."""
        info = replace(self.client.session(), **changed)
        self.say(SessionUpdated(properties=SessionInfo(session_id=self.client.main, info=info)))


def running(part: ToolPart, output: str | None = None) -> ToolPart:
    """Return a call as it was while it ran."""
    metadata = None if output is None else {"output": output}
    state = ToolStateRunning(
        input=part.state.input, time=ToolStart(start=int(NOW * 1000) - 1200), metadata=metadata
    )
    return msgspec.structs.replace(part, state=state)


@asynccontextmanager
async def stored(
    folder: Path,
    *,
    size: tuple[int, int],
    resumed: bool = True,
    client: StoredClient | None = None,
    toasts: bool = False,
) -> AsyncGenerator[Stored]:
    """Run the UI over what is stored, at a time that stands still."""
    (folder / "state").mkdir()
    (folder / "state" / "tour").write_text("shown\n")
    answering = client or StoredClient()
    ui = stored_ui(answering, folder / "state", resumed=resumed)
    ui.choices.settings = replace(ui.choices.settings, motion=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: NOW)
        patch.setattr(Renderer.__init__, "__defaults__", (time.time,))
        # It would be on some of the pictures.
        patch.setattr(Input, "_toggle_cursor", lambda _input: None)
        patch.setenv("TZ", "UTC")
        time.tzset()
        async with ui.run_test(size=size, notifications=toasts) as pilot:
            shown = Stored(ui, pilot, answering)
            await shown.settle(ui.opened_event.is_set)
            yield shown
        await ui.wait_for_close()
    time.tzset()
