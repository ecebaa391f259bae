"""The terminal UI: its screen, and what keys and messages of its parts set off."""

import asyncio
from collections.abc import Sequence

from textual import events, on
from textual.app import ComposeResult

from codeloop.tui.actions.heard import Hearing
from codeloop.tui.actions.opening import open_target
from codeloop.tui.actions.sending import run_slash, send
from codeloop.tui.actions.tabs import begin
from codeloop.tui.commands import BY_ID, BY_SLASH, COMMANDS
from codeloop.tui.dialogs.trust import TrustScreen
from codeloop.tui.prompt.entry import PromptEntry
from codeloop.tui.prompt.messages import CommandPressed, PromptSlashCommand, PromptSubmitted
from codeloop.tui.questions.panel import RequestPanel
from codeloop.tui.questions.send import send as send_answer
from codeloop.tui.screen.bare import BareHorizontal, BareVertical, GroundScreen
from codeloop.tui.screen.keyed_ui import KeyedUi
from codeloop.tui.screen.session_tab import SessionTab
from codeloop.tui.screen.sidebar import Sidebar
from codeloop.tui.screen.status_bar import StatusBar
from codeloop.tui.screen.tab_bar import TabBar
from codeloop.tui.screen.transcript.transcript import Transcript
from codeloop.tui.terminal.driver import TerminalGone


class TerminalUI(KeyedUi):
    """The program on the screen."""

    ENABLE_COMMAND_PALETTE = False
    table = COMMANDS
    CSS = """
    GroundScreen { background: $background; color: $foreground; }
    GroundScreen { layers: default keys; }
    #tabs { width: 1fr; height: 1fr; }
    ToastRack { dock: top; align: right top; margin: 1 0 0 0; }
    Toast { min-width: 38; padding: 0 1; }
    Dialog ToastRack { dock: bottom; align: right bottom; margin: 0; }
    """
    hearing: Hearing | None = None
    """None until the project is being opened."""
    problems: Sequence[str] = ()
    """What is wrong with the settings; said on the first screen."""

    def get_default_screen(self) -> GroundScreen:
        """Return the screen that everything stands on."""
        return GroundScreen()

    def compose(self) -> ComposeResult:
        """Yield the screen: the names of the tabs, the tabs, of which one is shown, and the status."""
        yield TabBar(self.appearance.styles)
        with BareHorizontal():
            yield BareVertical(id="tabs")
            yield Sidebar(self.appearance.styles)
        yield StatusBar(self.appearance.styles)

    async def on_mount(self) -> None:
        """Show a new session's tab; the project opens once that is on the screen."""
        self.scroll_sensitivity_y = self.choices.settings.scroll_speed
        self.restyle()
        await self.open_tab(None)
        for problem in self.problems:
            self.say(problem, "warning")
        self.call_after_refresh(self.begin)

    @on(TerminalGone)
    def leave(self) -> None:
        """End the program, as a signal does: turns of this process stop and are stored."""
        self.is_leaving.set()
        if self.opening is not None:
            self.exit(0)

    def interrupted(self) -> None:
        """End the program, unless the interrupt was typed for the one that has the terminal."""
        if not self.is_lent:
            self.leave()

    def show_tab(self, tab: SessionTab) -> None:
        """Show one of the tabs, and what stands beside it."""
        super().show_tab(tab)
        if self.hearing is not None:
            self.hearing.turned()

    async def closed(self) -> None:
        """Wait until the project is closed."""
        self.is_leaving.set()
        if self.opening is not None:
            await self.opening
        self.choices.close()

    async def on_event(self, event: events.Event) -> None:
        """Draw what another size has room for."""
        await super().on_event(event)
        if isinstance(event, events.Resize) and self.hearing is not None:
            self.hearing.turned()

    @on(PromptSubmitted)
    def _submitted(self, event: PromptSubmitted) -> None:
        self.aside(send(self, self.tab, event.entry, event.delivery))

    @on(PromptSlashCommand)
    def _slash(self, event: PromptSlashCommand) -> None:
        self.tab.prompt.calls_since = None
        if (row := BY_SLASH.get(event.name)) is not None and event.words and not row.arguments:
            self.tab.prompt.set_entry(PromptEntry(f"/{event.name} {event.words}"))
            self.say(f"/{event.name} takes no words. To say this to the model, put a space first.", "warning")
        elif row is not None and event.files:  # only a prompt can hold images
            self.aside(begin(self, PromptEntry(event.words, files=event.files)))
        elif row is not None:
            self.run_command(row, event.words)
        else:
            self.aside(run_slash(self, self.tab, event.name, event.words, event.files))

    @on(CommandPressed)
    def _command(self, event: CommandPressed) -> None:
        self.tab.prompt.calls_since = None
        self.run_command(BY_ID[event.command])

    @on(RequestPanel.Answered)
    def _answered(self, event: RequestPanel.Answered) -> None:
        self.tab.prompt.focus()
        for tab in self.tabs:  # a subagent's question stands in its own tab, and in those above it
            tab.panel.answered = event.request.id
        self.aside(send_answer(self.client, event.request, event.answer))

    @on(Transcript.Pointed)
    def _pointed(self, event: Transcript.Pointed) -> None:
        if event.kind == "link":
            self.aside(self.visit(event.value))
        else:
            name = "picture_view" if event.kind == "image" else "session_child_first"
            self.run_command(BY_ID[name], event.value)

    @on(Transcript.Toggled)
    def _toggled(self, event: Transcript.Toggled) -> None:
        if self.tab.view is not None:
            self.tab.view.toggle(event.key, event.message_id)
            self.tab.sync()

    @on(Transcript.NearTop)
    def _near_top(self, _event: Transcript.NearTop) -> None:
        if self.sessions is not None and self.tab.view is not None:
            self.aside(self._older(self.tab))

    @on(Transcript.Turned)
    def _turned(self) -> None:
        self.draw()

    @on(TabBar.Chosen)
    def _chosen(self, event: TabBar.Chosen) -> None:
        self.show_tab(self.tabs[event.place])

    async def _older(self, tab: SessionTab) -> None:
        if self.sessions is not None and tab.view is not None:
            await self.sessions.older(tab.view)
            self.draw()

    def begin(self) -> None:
        """Open the project."""
        if self.is_leaving.is_set():
            self.exit(0)
            return
        self.hearing = Hearing(self)
        self.opening = asyncio.create_task(open_target(self, self._trusts, self.hearing.hear))
        self.type_before()

    async def _trusts(self, question: str) -> bool:
        answered: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()
        screen = TrustScreen(question, lambda: self.appearance.styles)
        self.push_screen(screen, answered.set_result)
        is_trusted = bool(await answered)
        if screen.typed:
            self.tab.prompt.insert(screen.typed)
        return is_trusted
