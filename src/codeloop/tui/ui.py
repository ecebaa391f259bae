"""The base of the app, as actions use it: the tabs with their sessions, background tasks,
notices and drawing.

`app.py` adds the layout and the handling of keys.
"""

import asyncio
import logging
import time
import traceback
from collections.abc import Coroutine, Sequence
from functools import cached_property, partial
from typing import Any, Protocol

from textual.containers import Vertical
from textual.timer import Timer

from codeloop import __version__
from codeloop.client.client import Client
from codeloop.client.slash.jobs import count_words
from codeloop.kit.lazy import load_object
from codeloop.kit.paths import expand_user_path
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.installation import InstallationChanged, find_change
from codeloop.schema.jobs import count_running_jobs
from codeloop.schema.message import Session, format_model_ref
from codeloop.schema.wire import replace
from codeloop.tui.choices import Choices
from codeloop.tui.keys.early_keys import TypingRhythm
from codeloop.tui.keys.keymap import Keymap
from codeloop.tui.keys.repeated_key import RepeatedKey
from codeloop.tui.keys.ui_command import UiCommand
from codeloop.tui.render.greeting import draw_greeting
from codeloop.tui.settings.appearance import Appearance
from codeloop.tui.settings.ui_launch import UiLaunch
from codeloop.tui.state.conversation_items import NoticeItem, NoticeKind
from codeloop.tui.state.open_sessions import OpenSessions
from codeloop.tui.terminal.terminal_app import TerminalApp
from codeloop.tui.widgets.session_tab import SessionTab
from codeloop.tui.widgets.sidebar import Sidebar
from codeloop.tui.widgets.status_bar import FRAMES_PER_SECOND, StatusBar, StatusContent
from codeloop.tui.widgets.tab_bar import TabBar, make_window_title

# What an empty session says: characters to type in the prompt, and ids of commands,
# whose keys are shown.
PROMPT_HINTS = (
    ("@", "mention a file or an agent"),
    ("/", "run a command"),
    ("!", "run a shell command"),
)
COMMAND_HINTS = (("session_list", "resume an earlier session"), ("command_list", "everything else"))

FRAME_SECONDS = 1 / FRAMES_PER_SECOND
"""Seconds between frames of the animation while a turn runs."""
INCOMPLETE_ANSWER = """The last answer has no end: its program was ended, or still writes it in another terminal.
Say “go on” to continue; if it is still being written, stop that first with /takeover."""


class ConversationPictures(Protocol):
    """Draws pictures within the conversation; a protocol,
    since the class is imported with the first picture.
    """

    async def take_answer(self, query: str, answer: str) -> None:
        """Handle an answer of the terminal."""
        ...

    def resize(self) -> None:
        """Handle a new size of the screen."""
        ...


class Ui(TerminalApp, inherit_bindings=False):
    """The sessions of one target, each in a tab, of which one is shown."""

    inline_pictures: ConversationPictures | None = None
    """Draws pictures within the conversation; None until the first one is seen."""
    project_task: asyncio.Task[None] | None = None
    """Opens the project, and closes it once the user leaves."""

    commands: Sequence[UiCommand] = ()
    """All commands."""
    tasks: dict[asyncio.Task[Any], float | None]
    """The background tasks. A command's has the time when it started or last closed a
    dialog (monotonic seconds).

    None: no command. Keys typed after a command wait for the dialog that it may open
    (`keys/key_dispatcher.py`).
    """

    def __init__(
        self, launch: UiLaunch, appearance: Appearance, keymap: Keymap, choices: Choices
    ) -> None:
        super().__init__(ansi_color=None if appearance.has_colours else True)
        self.launch = launch
        self.appearance = appearance
        self.keymap = keymap
        self.choices = choices
        choices.on_connection_change = self._show_connection
        self.sessions: OpenSessions | None = None
        """None until the project is open."""
        self.shown_tab: SessionTab | None = None
        """None until the first tab is mounted."""
        self.opened_event = asyncio.Event()
        """Set once the project is open."""
        self._opening_lock = asyncio.Lock()
        self.quit_event = asyncio.Event()
        """Set when the user leaves."""
        self.tasks = {}
        self.repeated_key = RepeatedKey(self.draw, self.set_timer)
        self._ticker: Timer | None = None
        self.register_theme(appearance.theme)
        self.theme = appearance.theme.name

    @cached_property
    def typing_rhythm(self) -> TypingRhythm:
        """How fast the user types, in whatever tab."""
        return TypingRhythm()

    @property
    def failure(self) -> Exception | None:
        """The error that ended the program, if one did."""
        # Textual has no public name for it.
        return self._exception

    @property
    def tab(self) -> SessionTab:
        """The tab that is shown."""
        # The first tab is mounted, and handles messages, before it is shown.
        return self.shown_tab if self.shown_tab is not None else self.query_one(SessionTab)

    @property
    def tabs(self) -> list[SessionTab]:
        """All tabs, from left to right."""
        holder = self.query_one("#tabs", Vertical)
        return [each for each in holder.children if isinstance(each, SessionTab)]

    @property
    def client(self) -> Client:
        """The client of the shown session, or of the directory.
        Raises UsageProblem before the project is open.
        """
        if self.sessions is None:
            raise UsageProblem("The project is still being opened.")
        return (
            self.sessions.get_session_client(self.tab.session)
            if self.tab.session
            else self.sessions.client
        )

    @property
    def session(self) -> Session:
        """The session that is shown. Raises UsageProblem if there is none yet."""
        if self.tab.session is None:
            raise UsageProblem("There is no session yet; it starts with the first prompt.")
        return self.tab.session

    async def open_tab(self, session: Session | None, into: SessionTab | None = None) -> SessionTab:
        """Show a session in the tab that has it, else in `into`, else in an empty tab,
        else in a new one.

        None: an empty tab, whose first prompt creates a session. Raises CodeloopError.
        """
        # One after the other: two that are opened at once would take the same empty tab,
        # or one that is half mounted.
        async with self._opening_lock:
            return await self._open_tab(session, into)

    async def _open_tab(self, session: Session | None, into: SessionTab | None) -> SessionTab:
        tabs_with_session = (
            tab for tab in self.tabs if session and tab.session and tab.session.id == session.id
        )
        tab = next(tabs_with_session, into) or next(
            (tab for tab in self.tabs if tab.view is None), None
        )
        if tab is None:
            tab = _create_tab(self)
            await self.query_one("#tabs", Vertical).mount(tab)
        if session is not None and self.sessions is not None and tab.session != session:
            self._empty_tab(tab)
            view = await self.sessions.open(session)
            tab.show(view)
            if view.is_interrupted and not view.requests:
                tab.say(NoticeItem("cut", INCOMPLETE_ANSWER, "warning"))
            # While the lock is held, this session was created for the text that is being
            # sent from this prompt.
            tab.prompt.show_session(
                self.choices.client, session.id, is_new=tab.creation_lock.locked()
            )
        # The user may have left the tab `into` while its session was created: then it
        # stays in the background.
        if into is None or into is self.shown_tab or self.shown_tab is None:
            self.show_tab(tab)
        return tab

    async def close_tab(self, tab: SessionTab) -> None:
        """Close a tab; its session continues."""
        tabs = self.tabs
        index = tabs.index(tab)
        remaining = [*tabs[:index], *tabs[index + 1 :]]
        is_shown = tab is self.shown_tab
        self._empty_tab(tab)
        if remaining:
            await tab.remove()
            self.show_tab(remaining[min(index, len(remaining) - 1)] if is_shown else self.tab)
        else:
            # The last tab stays, without its session: there is always a prompt to type in.
            self.show_tab(tab)

    def show_tab(self, tab: SessionTab) -> None:
        """Show one of the tabs."""
        self.shown_tab = tab
        for each in self.tabs:
            each.display = each is tab
        tab.sync(everything=True)
        tab.take_focus()
        self.draw()

    def restyle(self) -> None:
        """Redraw everything with the current theme and options."""
        self.register_theme(self.appearance.theme)
        self.theme = self.appearance.theme.name
        for tab in self.tabs:
            tab.restyle(self.appearance.create_canvas(self.launch.directory, self.size.width))
        self.draw()

    def say(self, text: str, kind: NoticeKind = "info") -> None:
        """Show a notice below the conversation."""
        self.tab.say(NoticeItem(f"notice:{time.monotonic_ns()}", text, kind))

    def start_task(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Start a background task; its errors are shown."""
        task = asyncio.create_task(work)
        self.tasks[task] = None
        task.add_done_callback(self._report_task_error)
        return task

    def run_command(self, command: UiCommand, words: str = "") -> None:
        """Run a command in the background; `words`: what was typed after its name."""
        try:
            run = load_object(f"tui.{command.run}")
        except InstallationChanged as error:
            self.say(str(error), "error")
            # Restarting begins with this one, so it needs no module of its own.
            if command.id == "app_exit":
                self.exit(0)
            return
        task = self.start_task(run(self, words))
        self.tasks[task] = time.monotonic()

    def show_unsent(self) -> None:
        """Show in each tab the prompts that wait for a lost server."""
        for tab in self.tabs:
            tab.show_unsent(is_lost=bool(self.choices.connection_problem))

    def _show_connection(self) -> None:
        self.show_unsent()
        self.draw()

    def draw(self) -> bool:
        """Draw the changes; return whether the conversation has scrolled."""
        changed_ids = set[str]()
        if self.sessions is not None:
            changed_ids, self.sessions.changed_ids = self.sessions.changed_ids, set()
        # The last frames may come after the screen is closed.
        if self.shown_tab is None or not self.is_running:
            return False
        is_changed = self.shown_tab.session is not None and self.shown_tab.session.id in changed_ids
        has_scrolled = is_changed and self.shown_tab.sync()
        tabs = self.tabs
        # The clock ticks only while a turn runs: an idle program redraws nothing.
        if any(tab.view is not None and tab.view.is_busy for tab in tabs):
            self._ticker = self._ticker or self.set_interval(FRAME_SECONDS, self.advance_animation)
            self._ticker.resume()
        elif self._ticker is not None:
            self._ticker.pause()
        content = _make_status_content(self)
        self.query_one(StatusBar).show(self.tab.view, content, self.appearance.styles)
        sidebar = self.query_one(Sidebar)
        sidebar.display = self.appearance.has_sidebar(self.size.width)
        for tab in tabs:
            if tab.transcript.canvas.has_tasks_beside != sidebar.display:
                tab.restyle(replace(tab.transcript.canvas, has_tasks_beside=sidebar.display))
        if sidebar.display:
            sidebar.show(self.tab.view, content, self.appearance.styles)
        self.query_one(TabBar).show(tabs, self.shown_tab, self.appearance.styles)
        if self.choices.settings.title:
            self.window.set_title(make_window_title(tabs, self.shown_tab))
        return has_scrolled

    def _fatal_error(self) -> None:
        """Exit because of an error, without Textual's own report: that prints the values of
        variables, keys among them.

        `start.py` raises the error again once the terminal is restored.
        """
        error = self.failure
        if error is not None:
            logging.getLogger("codeloop.tui").critical(
                "crashed: %s", " ".join(traceback.format_exception(error))
            )
        self._close_messages_no_wait()

    def advance_animation(self) -> None:
        """Advance the animation while a turn runs."""
        if self.shown_tab is not None:
            self.shown_tab.transcript.redraw_running_calls()
        self.draw()

    def _empty_tab(self, tab: SessionTab) -> None:
        """Stop updating the session of a tab, and empty the tab."""
        if tab.session is not None and self.sessions is not None:
            self.sessions.close(tab.session.id)
        tab.detach_session()

    def _report_task_error(self, task: "asyncio.Task[Any]") -> None:
        self.tasks.pop(task, None)
        # At the end of the program the widgets that would show the error may be gone.
        if task.cancelled() or (error := task.exception()) is None or self.is_ending:
            return
        if isinstance(error, CodeloopError):
            # The same error is raised for the command line, where the remedy is another one.
            advice = "\nHere /connect does that." if "codeloop auth login" in str(error) else ""
            self.say(str(error) + advice, "error")
        else:
            # A bug: the user sees that the request was not carried out;
            # raised again, it gets into the log.
            bug = f"{type(error).__name__}: {error}\nThis is a bug in codeloop, not your mistake."
            self.say(str(find_change(error) or bug), "error")
            raise error


def _create_tab(ui: Ui) -> SessionTab:
    """Create an empty tab, whose greeting shows the first keys to know."""
    canvas = ui.appearance.create_canvas(ui.launch.directory, ui.size.width)
    command_hints = [(ui.keymap.format_key(command_id), hint) for command_id, hint in COMMAND_HINTS]
    greeting = partial(
        draw_greeting, title=f"codeloop {__version__}", keys=[*PROMPT_HINTS, *command_hints]
    )
    return SessionTab(
        canvas, lambda: ui.appearance.styles, ui.choices.create_prompt(), greeting, ui.typing_rhythm
    )


def _make_status_content(ui: Ui) -> StatusContent:
    """Return the content of the status bar apart from the session itself."""
    tab, choices, keymap = ui.tab, ui.choices, ui.keymap
    hint_command, hint = _choose_hint(tab, keymap)
    entry = choices.find_model_entry(tab)
    directory = tab.session.directory if tab.session else ui.launch.directory
    home = str(expand_user_path("~"))
    shown_directory = (
        f"~{directory.removeprefix(home)}" if directory.startswith(f"{home}/") else directory
    )
    return StatusContent(
        agent=choices.find_agent(tab) or "",
        model=one_line(_describe_model(choices, tab), 60),
        profile=one_line(choices.get_profile(tab), 20),
        directory=one_line(f"{ui.launch.server}  {shown_directory}".strip(), 100),
        context_window=int(entry.limit.context) if entry is not None else 0,
        problem=choices.connection_problem,
        hint=hint,
        hint_command=hint_command,
        pending_key=keymap.leader if keymap.is_leader_active else ui.repeated_key.hint,
        jobs=count_words(
            count_running_jobs((each.session for each in ui.tabs), on_server=bool(ui.launch.server))
        ),
        is_animated=choices.settings.motion,
    )


def _describe_model(choices: Choices, tab: SessionTab) -> str:
    """Return the model of a tab's next prompt, with its thinking effort, or that there is none;
    "": not known yet.
    """
    model = choices.resolve_model(tab)
    if model is None:
        return "no model: /connect" if choices.providers is not None else ""
    return format_model_ref(model) + (f" ({model.variant})" if model.variant else "")


def _choose_hint(tab: SessionTab, keymap: Keymap) -> tuple[str, str]:
    """Return the id of the most useful command now, and its hint (`esc twice stops`);
    empty: none has a key.
    """
    is_running = tab.view is not None and tab.view.is_busy and not tab.view.requests
    for command_id, words, is_wanted in (
        ("messages_last", "newest", tab.view is not None and not tab.transcript.follows),
        ("session_parent", "back", tab.session is not None and tab.session.parent_id is not None),
        ("session_interrupt", "twice stops", is_running),
        ("command_list", "commands", True),
    ):
        if is_wanted and (key := keymap.format_key(command_id)):
            return command_id, f"{key} {words}"
    return "", ""
