"""`EventHandler`: reacts to the events of the project: redraws, reloads data, shows toasts,
notifies the user.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Literal

from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.event import (
    Event,
    MessageUpdated,
    PermissionAsked,
    QuestionAsked,
    SessionDeleted,
)
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
from codeloop.tui.actions.send import reload_queues, send_queued_prompt
from codeloop.tui.actions.sidebar import refresh_sidebar
from codeloop.tui.actions.tabs import close_deleted_session
from codeloop.tui.ui import Ui

FRAME_INTERVAL = 1 / 30
"""Seconds between two frames while something changes."""
# Every row is written again, which costs ten times as much as a frame in which a few rows change.
SCROLL_INTERVAL = 1 / 15
"""Seconds until the next frame after one that moved every row."""


class FrameScheduler:
    """Draws a frame soon after a request, at a limited rate.
    `draw` returns whether every row has moved.
    """

    def __init__(self, draw: Callable[[], bool]) -> None:
        self._draw = draw
        self._next_frame_at = 0.0
        """The earliest time of the next frame (monotonic seconds)."""
        self._timer: asyncio.TimerHandle | None = None

    def request(self) -> None:
        """Draw with the next frame."""
        # After a pause, the frame is drawn in the next round of the event loop: the effect
        # of a key shows at once.
        if self._timer is None:
            delay = max(self._next_frame_at - time.monotonic(), 0.0)
            self._timer = asyncio.get_running_loop().call_later(delay, self._draw_frame)

    def _draw_frame(self) -> None:
        self._timer, now = None, time.monotonic()
        self._next_frame_at = now + (SCROLL_INTERVAL if self._draw() else FRAME_INTERVAL)


class Throttle:
    """Starts a task once for many requests, `delay` seconds after the first,
    and never while the previous one runs.
    """

    def __init__(self, start_task: Callable[[], asyncio.Task[Any]], delay: float) -> None:
        self._start_task = start_task
        self._delay = delay
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Any] | None = None

    def request(self) -> None:
        """Have the task started soon, unless that is already scheduled."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._delay, self._run)

    def _run(self) -> None:
        self._timer = None
        # The running task may have read its data before the event that made this request.
        if self._task is not None and not self._task.done():
            self.request()
        else:
            self._task = self._start_task()


RELOAD_DELAY_SECONDS = 0.3
"""Seconds after an event, such as a file change, until the sidebar or the choices are reloaded,
once for many.
"""
LONG_TURN_SECONDS = 10.0
"""A turn longer than this, in seconds, notifies the user when it ends."""
QUEUE_DELAY_SECONDS = 0.05
"""Seconds after a message's change until the queued prompts are reloaded."""
TOAST_SECONDS = 10.0
"""Seconds that a toast stays, unless its sender says otherwise."""
_SEVERITY_BY_VARIANT: dict[str, Literal["information", "warning", "error"]] = {
    "info": "information",
    "success": "information",
    "warning": "warning",
    "error": "error",
}


class EventHandler:
    """Handles every event of the project. There may be hundreds a second,
    so slow work is done once for many.
    """

    def __init__(self, ui: Ui) -> None:
        self._ui = ui
        self._turn_starts: dict[str, float] = {}
        """When the running turns began (monotonic seconds), by the session's id."""
        self._frames = FrameScheduler(ui.draw)
        self._sidebar = Throttle(lambda: ui.start_task(refresh_sidebar(ui)), RELOAD_DELAY_SECONDS)
        self._choices = Throttle(lambda: ui.start_task(_reload_choices(ui)), RELOAD_DELAY_SECONDS)
        self._queue = Throttle(lambda: ui.start_task(reload_queues(ui)), QUEUE_DELAY_SECONDS)

    def handle(self, event: Event) -> None:
        """React to an event, and redraw with the next frame."""
        ui = self._ui
        match event:
            case StatusChanged(properties=p) if not isinstance(p.status, Idle):
                self._turn_starts.setdefault(p.session_id, time.monotonic())
            case PermissionAsked(properties=p):
                self._notify_user(
                    p.session_id, "A permission is asked for", includes_subagents=True
                )
            case QuestionAsked(properties=p):
                self._notify_user(p.session_id, "A question is asked", includes_subagents=True)
            case SessionIdle(properties=p):
                # A turn that began before this UI has no start here, and counts as short.
                if (
                    time.monotonic() - self._turn_starts.pop(p.session_id, time.monotonic())
                    >= LONG_TURN_SECONDS
                ):
                    # The end of a subagent's turn is not news.
                    self._notify_user(p.session_id, "The turn is over", includes_subagents=False)
                self._sidebar.request()
                ui.start_task(send_queued_prompt(ui, p.session_id))
            case FileEdited() | SessionDiff() | BranchUpdated() | LspUpdated() | McpToolsChanged():
                self._sidebar.request()
            case MessageUpdated():
                self._queue.request()
            case InstanceDisposed() | GlobalDisposed():
                self._choices.request()
            case SessionDeleted(properties=p):
                ui.start_task(close_deleted_session(ui, p.session_id))
            case ToastShown(properties=p):
                self._show_toast(p)
            case _:
                pass
        self._frames.request()

    def _show_toast(self, toast: Toast) -> None:
        seconds = TOAST_SECONDS if toast.duration is None else toast.duration / 1000
        title = escape_controls(toast.title or "")
        self._ui.notify(
            escape_controls(toast.message),
            title=title,
            severity=_SEVERITY_BY_VARIANT[toast.variant],
            timeout=seconds,
            markup=False,
        )

    def redraw(self) -> None:
        """Draw for another size or another tab; then refresh the sidebar's data."""
        self._frames.request()
        self._sidebar.request()

    def _notify_user(self, session_id: str, message: str, *, includes_subagents: bool) -> None:
        """Notify the user, if the terminal has no focus,
        that a session of an open tab needs attention.
        """
        views = (tab.view for tab in self._ui.tabs)
        view = next((view for view in views if view is not None and view.owns(session_id)), None)
        if view is None or self._ui.app_focus:
            return
        if includes_subagents or view.session.id == session_id:
            settings = self._ui.choices.settings
            title = f"codeloop: {view.session.title}"
            self._ui.window.alert(
                title, message, has_bell=settings.bell, has_notification=settings.notifications
            )


async def _reload_choices(ui: Ui) -> None:
    """Reload the agents, the models and the profile after a change of the configuration."""
    await ui.choices.reload()
    ui.draw()
