"""The main screen: runs the actions that clicks, sent prompts and answers ask for."""

from textual import events, on
from textual.screen import Screen

from codeloop.tui.actions.send import run_project_command, send_answer, send_prompt
from codeloop.tui.actions.tabs import start_session
from codeloop.tui.commands import COMMANDS_BY_ID, COMMANDS_BY_SLASH, SESSION
from codeloop.tui.keys.key_dispatcher import KeyDispatcher
from codeloop.tui.keys.ui_command import UiCommand
from codeloop.tui.state.session_view import SessionView
from codeloop.tui.terminal.textual_private import set_update_period
from codeloop.tui.ui import Ui
from codeloop.tui.widgets.base_widgets import find_clicked_command
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry
from codeloop.tui.widgets.prompt.prompt_messages import (
    CommandPressed,
    EmptySubmitted,
    PromptSlashCommand,
    PromptSubmitted,
)
from codeloop.tui.widgets.prompt.queued_prompts import SEND_OFFER
from codeloop.tui.widgets.request_panel.request_panel import RequestPanel
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
            self._ui.run_command(COMMANDS_BY_ID["queue_send"])

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
