"""Reactions of the UI to events: redrawing, toasts, notifications, refreshing."""

import time
from typing import Literal

from codeloop.kit.terminal_text import escape_controls
from codeloop.schema.event import Event, MessageUpdated, PermissionAsked, QuestionAsked, SessionDeleted
from codeloop.schema.live_events import (
    BranchUpdated,
    FileEdited,
    GlobalDisposed,
    Idle,
    InstanceDisposed,
    LspUpdated,
    McpToolsChanged,
    SessionDiff,
    SessionIdle,
    StatusChanged,
    Toast,
    ToastShown,
)
from codeloop.tui.actions.send import look_for_queued, send_next
from codeloop.tui.actions.sidebar import refresh_sidebar
from codeloop.tui.actions.tabs import close_deleted
from codeloop.tui.state.frame_rate import Debounce, Frames
from codeloop.tui.ui import Ui

DEBOUNCE = 0.3
"""Seconds of file changes that the sidebar collects before it asks for the list."""
LONG = 10.0
"""A turn longer than this, in seconds, notifies the user when it ends."""
STEP = 0.05
"""Seconds after a message's change until the queued prompts are asked for."""


TOAST = 10.0
"""Default seconds of a toast."""


_SEVERITY: dict[str, Literal["information", "warning", "error"]] = {
    "info": "information",
    "success": "information",
    "warning": "warning",
    "error": "error",
}


class EventHandler:
    """Handles every event of the project, hundreds a second: slow work is done once for many of them."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui
        self._began: dict[str, float] = {}
        """When the turns of sessions began."""
        self._frames = Frames(ui.draw)
        self._sidebar = Debounce(lambda: ui.start_task(refresh_sidebar(ui)), DEBOUNCE)
        self._choices = Debounce(lambda: ui.start_task(_choose_anew(ui)), DEBOUNCE)
        self._queued = Debounce(lambda: ui.start_task(look_for_queued(ui)), STEP)

    def handle(self, event: Event) -> None:
        """Draw with the next frame what has changed."""
        ui = self._ui
        match event:
            case StatusChanged(properties=p) if not isinstance(p.status, Idle):
                self._began.setdefault(p.session_id, time.monotonic())
            case PermissionAsked(properties=p):
                self._call(p.session_id, "A permission is asked for")
            case QuestionAsked(properties=p):
                self._call(p.session_id, "A question is asked")
            case SessionIdle(properties=p):
                if time.monotonic() - self._began.pop(p.session_id, time.monotonic()) >= LONG:
                    self._call(p.session_id, "The turn is over")
                self._sidebar.request()
                ui.start_task(send_next(ui, p.session_id))
            case FileEdited() | SessionDiff() | BranchUpdated() | LspUpdated() | McpToolsChanged():
                self._sidebar.request()
            case MessageUpdated():
                self._queued.request()
            case InstanceDisposed() | GlobalDisposed():
                self._choices.request()
            case SessionDeleted(properties=p):
                ui.start_task(close_deleted(ui, p.session_id))
            case ToastShown(properties=p):
                self._show(p)
            case _:
                pass
        self._frames.request()

    def _show(self, toast: Toast) -> None:
        seconds = TOAST if toast.duration is None else toast.duration / 1000
        title = escape_controls(toast.title or "")
        self._ui.notify(
            escape_controls(toast.message),
            title=title,
            severity=_SEVERITY[toast.variant],
            timeout=seconds,
            markup=False,
        )

    def redraw(self) -> None:
        """Draw for another size or another tab; then refresh the sidebar's data."""
        self._frames.request()
        self._sidebar.request()

    def _call(self, session_id: str, what: str) -> None:
        """Notify the user who is looking elsewhere that this session needs attention."""
        views = (tab.view for tab in self._ui.tabs)
        view = next((view for view in views if view is not None and view.owns(session_id)), None)
        if view is not None and not self._ui.app_focus and (view.session.id == session_id or view.requests):
            settings = self._ui.choices.settings
            title = f"codeloop: {view.session.title}"
            self._ui.window.call_back(title, what, has_bell=settings.bell, has_notice=settings.notifications)


async def _choose_anew(ui: Ui) -> None:
    """Reload agents, models and commands after a change of the configuration."""
    await ui.choices.look()
    ui.draw()
