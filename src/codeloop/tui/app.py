"""The Textual app of the terminal UI: composes the widgets, and handles keys,
resizes and answers of the terminal.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from textual import events, on
from textual.app import ComposeResult
from textual.notifications import SeverityLevel
from textual.screen import Screen

from codeloop.tui.actions.project.event_handler import EventHandler
from codeloop.tui.actions.project.open_project import run_project
from codeloop.tui.actions.send import run_project_command, send_answer, send_prompt
from codeloop.tui.actions.tabs import start_session
from codeloop.tui.choices import Choices
from codeloop.tui.commands import COMMANDS, COMMANDS_BY_ID, COMMANDS_BY_SLASH, SESSION
from codeloop.tui.dialogs.trust import TrustScreen
from codeloop.tui.keys.key_dispatcher import KeyDispatcher
from codeloop.tui.keys.keymap import Keymap
from codeloop.tui.keys.ui_command import UiCommand
from codeloop.tui.settings.appearance import Appearance
from codeloop.tui.settings.ui_launch import UiLaunch
from codeloop.tui.state.conversation_items import NoticeKind
from codeloop.tui.state.session_view import SessionView
from codeloop.tui.terminal.input.input_queue import InputDropped
from codeloop.tui.terminal.terminal_colours import parse_dark_background
from codeloop.tui.terminal.terminal_driver import (
    BACKGROUND_NUMBER,
    TerminalAnswered,
    TerminalClosed,
)
from codeloop.tui.terminal.textual_private import set_update_period
from codeloop.tui.ui import Ui
from codeloop.tui.widgets.base_widgets import PlainHorizontal, PlainVertical, find_clicked_command
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry
from codeloop.tui.widgets.prompt.prompt_messages import (
    CommandPressed,
    EmptySubmitted,
    PromptSlashCommand,
    PromptSubmitted,
    PromptTyped,
)
from codeloop.tui.widgets.prompt.queued_prompts import SEND_OFFER
from codeloop.tui.widgets.request_panel.request_panel import RequestPanel
from codeloop.tui.widgets.session_tab import SessionTab
from codeloop.tui.widgets.sidebar import Sidebar
from codeloop.tui.widgets.status_bar import StatusBar
from codeloop.tui.widgets.tab_bar import TabBar
from codeloop.tui.widgets.transcript.transcript import Transcript

UPDATE_PERIOD_SECONDS = 1 / 200
"""Seconds that a change waits to be drawn together with others."""


class MainScreen(Screen[None]):
    """Handles the messages of the tabs, the bars and the sidebar by running actions."""

    # The screen has no border or content of its own, so Textual need not look for any.
    BLANK = True
    DEFAULT_CSS = """
    MainScreen { background: $background; color: $foreground; layers: default keys; }
    """

    def __init__(self, ui: Ui, dispatcher: KeyDispatcher) -> None:
        super().__init__(id="_default")
        self._ui = ui
        self._dispatcher = dispatcher
        # Textual's own period, the time between two frames,
        # delays what a key changes so much that it is noticed.
        set_update_period(UPDATE_PERIOD_SECONDS)

    def on_key(self, event: events.Key) -> None:
        """Run the command of a key that nothing else has taken."""
        self._dispatcher.run_key_command(event)

    def on_click(self, event: events.Click) -> None:
        """Run the command of clicked words of the status bar or the sidebar."""
        if clicked := find_clicked_command(event):
            command_id, words = clicked
            self._ui.run_command(COMMANDS_BY_ID[command_id], words)

    @on(PromptSubmitted)
    def _send_prompt(self, event: PromptSubmitted) -> None:
        self._ui.start_task(send_prompt(self._ui, self._ui.tab, event.entry, event.delivery))

    @on(EmptySubmitted)
    def _send_waiting_prompt(self) -> None:
        """Send the prompt that waits, if the hint of Escape offers that."""
        if self._ui.repeated_key.hint.endswith(SEND_OFFER):
            self._ui.repeated_key.forget()
            self._ui.run_command(COMMANDS_BY_ID["queue_send"])

    @on(PromptTyped)
    def _forget_key(self) -> None:
        self._ui.repeated_key.forget()

    @on(PromptSlashCommand)
    def _run_slash_command(self, event: PromptSlashCommand) -> None:
        ui = self._ui
        ui.tab.prompt.command_submitted_at = None
        command = COMMANDS_BY_SLASH.get(event.name)
        if command is None:
            ui.start_task(run_project_command(ui, ui.tab, event.name, event.words, event.files))
        elif event.words and not command.arguments:
            self._refuse_command(
                event, "takes no words. To say this to the model, put a space first."
            )
        elif event.files and command.id != "session_new":
            self._refuse_command(
                event, "takes no images. To send them to the model, put a space first."
            )
        elif event.files:
            ui.start_task(start_session(ui, PromptEntry(event.words, files=event.files)))
        elif command.group == SESSION and not ui.opened_event.is_set():
            ui.start_task(_run_when_open(ui, command, event.words))
        else:
            ui.run_command(command, event.words)

    def _refuse_command(self, event: PromptSlashCommand, reason: str) -> None:
        """Put a command back into the prompt, to be corrected, and say why."""
        self._ui.tab.prompt.set_entry(
            PromptEntry(f"/{event.name} {event.words}", files=event.files)
        )
        self._ui.say(f"/{event.name} {reason}", "warning")

    @on(CommandPressed)
    def _run_key_command(self, event: CommandPressed) -> None:
        self._ui.tab.prompt.command_submitted_at = None
        self._ui.run_command(COMMANDS_BY_ID[event.command])

    @on(RequestPanel.Answered)
    def _send_answer(self, event: RequestPanel.Answered) -> None:
        self._ui.tab.prompt.focus()
        # A subagent's question is shown in its own tab and in those of its parents.
        for tab in self._ui.tabs:
            tab.panel.answered_id = event.request.id
        self._ui.start_task(send_answer(self._ui.client, event.request, event.answer))

    @on(RequestPanel.CommentWanted)
    def _comment_on_plan(self, _event: RequestPanel.CommentWanted) -> None:
        self._ui.run_command(COMMANDS_BY_ID["plan_comment"])

    @on(Transcript.Clicked)
    def _follow_link(self, event: Transcript.Clicked) -> None:
        if event.kind == "link":
            self._ui.start_task(self._ui.open_link(event.value))
        else:
            name = "picture_view" if event.kind == "image" else "session_child_first"
            self._ui.run_command(COMMANDS_BY_ID[name], event.value)

    @on(Transcript.Toggled)
    def _toggle_item(self, event: Transcript.Toggled) -> None:
        if self._ui.tab.view is not None:
            self._ui.tab.view.toggle(event.key, event.message_id)
            self._ui.tab.sync()

    @on(Transcript.NearTop)
    def _load_older_messages(self, _event: Transcript.NearTop) -> None:
        if self._ui.sessions is not None and (view := self._ui.tab.view) is not None:
            self._ui.start_task(_load_older(self._ui, view))

    @on(Transcript.PictureSeen)
    def _draw_pictures(self) -> None:
        if self._ui.inline_pictures is None and self._ui.appearance.wants_pictures:
            # Loaded with the first picture: most sessions have none.
            from codeloop.tui.terminal.pictures.inline_pictures import InlinePictures

            self._ui.inline_pictures = InlinePictures(self._ui)

    @on(Transcript.FollowChanged)
    def _redraw_bars(self) -> None:
        # The status bar offers a key to the end of the conversation while the
        # view does not follow it.
        self._ui.draw()

    @on(TabBar.Clicked)
    def _show_clicked_tab(self, event: TabBar.Clicked) -> None:
        self._ui.show_tab(self._ui.tabs[event.index])


async def _load_older(ui: Ui, view: SessionView) -> None:
    if ui.sessions is not None:
        await ui.sessions.load_older(view)
        ui.draw()


async def _run_when_open(ui: Ui, command: UiCommand, words: str) -> None:
    """Run a command of the session that is still being opened, as a prompt is sent to it."""
    await ui.opened_event.wait()
    ui.run_command(command, words)


class TerminalUI(Ui, inherit_bindings=False):
    """The app with its widgets, key dispatcher and event handler;
    `Ui` is what actions use of it.
    """

    ENABLE_COMMAND_PALETTE = False
    commands = COMMANDS
    CSS = """
    #tabs { width: 1fr; height: 1fr; }
    ToastRack { dock: top; align: right top; margin: 1 0 0 0; }
    Toast { min-width: 38; padding: 0 1; }
    Dialog ToastRack { dock: bottom; align: right bottom; margin: 0; }
    """
    event_handler: EventHandler | None = None
    """Handles the project's events; None until the project is being opened."""
    problems: Sequence[str] = ()
    """Problems of the settings, shown on the first screen."""

    def __init__(
        self, launch: UiLaunch, appearance: Appearance, keymap: Keymap, choices: Choices
    ) -> None:
        super().__init__(launch, appearance, keymap, choices)
        # The dispatcher gets Textual's own handler, since `on_event` of this class
        # calls the dispatcher.
        self.dispatcher = KeyDispatcher(self, super().on_event)

    def get_default_screen(self) -> MainScreen:
        """Return the main screen."""
        return MainScreen(self, self.dispatcher)

    def compose(self) -> ComposeResult:
        """Yield the tab bar, the tabs (one is shown), and the status bar."""
        yield TabBar(self.appearance.styles)
        with PlainHorizontal():
            yield PlainVertical(id="tabs")
            yield Sidebar(self.appearance.styles)
        yield StatusBar(self.appearance.styles)

    async def on_mount(self) -> None:
        """Show a new session's tab; the project opens once that is on the screen."""
        self.scroll_sensitivity_y = self.choices.settings.scroll_speed
        self.restyle()
        await self.open_tab(None)
        for problem in self.problems:
            self.say(problem, "warning")
        # Opening a project takes the loop for a while; the prompt is on the screen, and takes keys,
        # before that.
        self.call_after_refresh(self.begin)

    @on(TerminalClosed)
    def quit(self) -> None:
        """End the program, as a signal does: turns of this process stop and are stored."""
        self.quit_event.set()
        # Before the project is being opened the app may not run yet: `begin` exits then.
        if self.project_task is not None:
            self.exit(0)

    def _exit_after_crash(self, project_task: "asyncio.Task[None]") -> None:
        """Exit when opening the project, or closing it, has crashed;
        `wait_for_close` raises the error again.
        """
        if not project_task.cancelled() and project_task.exception() is not None:
            self.exit(1, return_code=1)

    def interrupt(self) -> None:
        """End the program, unless the interrupt was meant for another program
        that has the terminal.

        The terminal sends SIGINT to all processes of the foreground group,
        so also to this one behind an editor.
        """
        if not self.is_suspended:
            self.quit()

    def show_tab(self, tab: SessionTab) -> None:
        """Show one of the tabs, and its sidebar."""
        super().show_tab(tab)
        if self.event_handler is not None:
            self.event_handler.redraw()

    async def wait_for_close(self) -> None:
        """Have the project closed, and wait until it is."""
        self.quit_event.set()
        if self.project_task is not None:
            await self.project_task
        self.choices.close()

    async def on_event(self, event: events.Event) -> None:
        """Dispatch keys in order; redraw after a resize."""
        await self.dispatcher.dispatch(event)
        if isinstance(event, events.Resize):
            if self.event_handler is not None:
                self.event_handler.redraw()
            # Pictures are drawn into cells whose position is known only after the new layout.
            if self.inline_pictures is not None:
                self.call_after_refresh(self.inline_pictures.resize)

    async def wait_for_keys(self) -> None:
        """Wait until the keys that were held back are handled."""
        await self.dispatcher.key_order.wait_until_empty()

    @on(TerminalAnswered)
    def _handle_terminal_answer(self, event: TerminalAnswered) -> None:
        is_dark = parse_dark_background(event.text) if event.query == BACKGROUND_NUMBER else None
        if is_dark is not None and self.appearance.set_background(is_dark=is_dark):
            self.restyle()
        if self.inline_pictures is not None:
            self.start_task(self.inline_pictures.take_answer(event.query, event.text))

    @on(InputDropped)
    def _drop_held_keys(self, event: InputDropped) -> None:
        self.dispatcher.key_order.drop_held()
        # Textual's toast, also in an empty session: the key that comes next may dismiss a
        # notice below the greeting.
        super().notify(f"{event.count:,} keys that waited were dropped.", severity="warning")

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        **options: Any,
    ) -> None:
        """Show a message for a while; in an empty session it stays below the greeting,
        instead of covering it.
        """
        # With a dialog open (a second screen), the greeting is covered,
        # and a notice below it would not be seen.
        if (
            self.shown_tab is not None
            and self.shown_tab.view is None
            and len(self.screen_stack) == 1
        ):
            kind: NoticeKind = "info" if severity == "information" else severity
            self.say(f"{title}: {message}" if title else message, kind)
        else:
            super().notify(message, title=title, severity=severity, **options)

    def begin(self) -> None:
        """Start opening the project, and handle the keys that were typed before."""
        if self.quit_event.is_set():
            self.exit(0)
            return
        self.event_handler = EventHandler(self)
        self.project_task = asyncio.create_task(
            run_project(self, self._ask_trust, self.event_handler.handle)
        )
        self.project_task.add_done_callback(self._exit_after_crash)
        self.dispatcher.replay_events_before_opening()

    async def _ask_trust(self, question: str) -> bool:
        future: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()
        screen = TrustScreen(question, lambda: self.appearance.styles)
        self.push_screen(screen, future.set_result)
        # None: the dialog was closed without an answer, which is a no.
        is_trusted = bool(await future)
        if screen.early_text:
            self.tab.prompt.insert(screen.early_text)
        return is_trusted
