"""What the screen does about an event, besides showing it."""

from codeloop.schema.event import Event, MessageUpdated, PermissionAsked, QuestionAsked
from codeloop.schema.live_events import FileEdited, SessionIdle
from codeloop.tui.actions.beside import refresh
from codeloop.tui.actions.sending import look_for_queued, send_next
from codeloop.tui.screen.pace import Frames, Lull
from codeloop.tui.ui import Ui

LULL = 0.3
"""Seconds that files change before the sidebar asks which they were."""
STEP = 0.05
"""Seconds after a message changed until it is asked which prompts still wait."""


class Hearing:
    """Hears every event of the project, many hundred a second: what takes long is done once for many of them."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui
        self._frames = Frames(ui.draw)
        self._beside = Lull(lambda: ui.aside(refresh(ui)), LULL)
        self._queued = Lull(lambda: ui.aside(look_for_queued(ui)), STEP)

    def hear(self, event: Event) -> None:
        """Draw with the next frame what has changed."""
        ui = self._ui
        match event:
            case SessionIdle(properties=p):
                self._beside.want()
                ui.aside(send_next(ui, p.session_id))
            case FileEdited():
                self._beside.want()
            case MessageUpdated():
                self._queued.want()
            case _:
                pass
        if isinstance(event, SessionIdle | PermissionAsked | QuestionAsked) and not ui.app_focus:
            self._ring()
        self._frames.want()

    def resized(self) -> None:
        """Draw what another size gives room for: there may be some for the sidebar."""
        self._frames.want()
        self._beside.want()

    def _ring(self) -> None:
        """Tell a person who looks elsewhere that there is something to look at."""
        if self._ui.choices.settings.bell:
            self._ui.bell()
