"""The panel that shows a session's requests: permissions and questions.
Its choices always stay visible.

A key typed before the question could be read must not answer it. Until the user has paused typing
after the panel was drawn, keys are posted as `RequestPanel.InputForPrompt`.
`keys/early_keys.py` says how long a pause.
"""

from collections.abc import Callable
from time import monotonic

from textual import events, on
from textual.app import ComposeResult
from textual.widget import Widget
from textual.widgets import Input

from codeloop.client.questions.requester import Requester
from codeloop.client.slash.commands import is_command
from codeloop.schema.permission import PermissionRequest
from codeloop.tui.dialogs.parts.dialog import SMALL_SCREEN_ROWS, GetStyles
from codeloop.tui.keys.early_keys import EarlyKeys
from codeloop.tui.render.canvas import Canvas, DiffView
from codeloop.tui.state.session_view import Request
from codeloop.tui.widgets.base_widgets import get_app
from codeloop.tui.widgets.line_input import LineInput
from codeloop.tui.widgets.request_panel.draw_form import (
    COMMENT_KEY,
    WHOLE_SCREEN_KEY,
    draw_choices,
    draw_content,
    draw_cut_note,
    draw_head,
    draw_hints,
)
from codeloop.tui.widgets.request_panel.form import Form, FormEntry
from codeloop.tui.widgets.request_panel.full_request_screen import TITLE_WIDTH, FullRequestScreen
from codeloop.tui.widgets.request_panel.panel_messages import (
    Answered,
    CommentWanted,
    InputForPrompt,
)
from codeloop.tui.widgets.request_panel.permission_form import PermissionForm
from codeloop.tui.widgets.request_panel.question_form import QuestionForm
from codeloop.tui.widgets.rows_view import RowsView

WITHDRAWN_NOTICE = "A question was answered elsewhere, or withdrawn."
DRAFT_NOTICE = (
    "Text stands in the prompt, so enter may be meant for that. Press enter again{} to choose."
)
COMMAND_NOTICE = "That is a command, not an answer: it stands in the prompt."
RESERVED_ROWS, SMALL_RESERVED_ROWS = 5, 4
"""Rows of the screen that the panel leaves to other widgets, and on a small screen."""
MIN_ROWS = 3
"""Rows that the choices have even on the smallest screen,
and that they leave to the content on a larger one.
"""
_SERIES_SECONDS = 5.0
"""Seconds after an answer in which a key that would answer is meant for the next question,
not for the prompt.
"""
_POLL_SECONDS = 0.02
"""Between two checks whether the choices are drawn: Textual does not tell when a widget was."""
# A command can be run although a question is shown.
_COMMAND_PREFIXES = ("/", "!")
"""The characters that begin a command."""
_SCROLL_SHARES = {
    "pageup": -1.0,
    "pagedown": 1.0,
    "ctrl+u": -0.5,
    "ctrl+d": 0.5,
    "shift+up": 0.0,
    "shift+down": 0.0,
}
"""The keys that scroll the content, and by which part of the visible rows; 0: by one row."""


class RequestPanel(Widget, can_focus=True):
    """Shows one request at a time; hidden without one.

    `compute_pause` returns how many seconds must pass without a key, after the panel was first
    drawn, until keys count as an answer.
    """

    DEFAULT_CSS = """
    RequestPanel { height: auto; display: none; padding: 0 1; layout: vertical; background: $background-panel; }
    RequestPanel Input { height: 1; border: none; padding: 0 2; background: transparent; display: none; }
    RequestPanel Input:focus { border: none; background-tint: transparent; }
    """

    answered_id = ""
    """The request last answered in this program, here or in another tab,
    for which no notice is shown.
    """

    # For the decorators of handlers, such as @on(RequestPanel.Answered).
    Answered = Answered
    CommentWanted = CommentWanted
    InputForPrompt = InputForPrompt

    def __init__(self, get_styles: GetStyles, compute_pause: Callable[[], float]) -> None:
        super().__init__()
        self._early_keys = EarlyKeys(compute_pause)
        self.request: Request | None = None
        self._get_styles = get_styles
        self._form: Form | None = None
        """The state of the request that is shown."""
        self._waiting_count = 1
        """How many requests wait, including the one that is shown."""
        self._choice_of_row: list[int] = []
        """The index of the choice that each row of the choices belongs to."""
        self._answered_at = -_SERIES_SECONDS
        """When the last question was answered here (monotonic seconds)."""
        self._held_keys: list[events.Key] | None = None
        """Keys that came too early for a question of a series, dropped unless words follow;
        None: not a series.
        """
        self._is_command = False
        """Whether a command was begun with `/` or `!`: the keys after it go to the prompt."""
        self._shown_entry: FormEntry | None = None
        self.diff_view: DiffView = "auto"

    def compose(self) -> ComposeResult:
        """Yield the title, the content, the choices, and a line to type in."""
        yield RowsView("request-head")
        yield RowsView("request-about")
        yield RowsView("request-choices")
        yield RowsView("request-keys")
        yield LineInput(id="request-entry", select_on_focus=False)

    @property
    def is_ready(self) -> bool:
        """Whether keys count as an answer."""
        return monotonic() >= self._early_keys.ready_at

    def show(
        self,
        request: Request,
        requester: Requester,
        waiting_count: int = 1,
        *,
        has_draft: bool = False,
        early_text: str = "",
    ) -> None:
        """Show a request; for the request that is shown already, only update `waiting_count`.

        `requester`: the tool and the subagent that ask. `waiting_count`: how many requests wait,
        including this one.
        `has_draft`: the prompt holds text. `early_text`: was typed before a question of a series.
        """
        self._waiting_count = waiting_count
        if self.request is None or self.request.id != request.id:
            self.request = request
            is_permission = isinstance(request, PermissionRequest)
            self._form = (
                PermissionForm(request, requester)
                if is_permission
                else QuestionForm(request, requester)
            )
            self._early_keys.begin_question(has_draft=has_draft)
            is_series = not has_draft and self.is_in_series
            early_keys = [events.Key(each, each) for each in early_text]
            self._held_keys = early_keys if is_series else None
            self.display = True
            self.focus()
            self.query_one("#request-choices", RowsView).is_drawn = False
            self._wait_for_drawing()
        self.draw()

    @property
    def is_in_series(self) -> bool:
        """Whether a question was answered just now: a key may be for the next one."""
        return monotonic() - self._answered_at < _SERIES_SECONDS

    def withdraw(self, request_id: str) -> None:
        """Hide the panel if it shows this request; an answer to a question that is being
        typed goes to the prompt.
        """
        if self.request is not None and self.request.id == request_id:
            # An answer in the user's own words is not lost;
            # a reason to reject would mean nothing in the prompt.
            text = (
                self._entry.value if self._form is not None and self._form.entry is not None else ""
            )
            if text and isinstance(self._form, QuestionForm):
                self.post_message(self.InputForPrompt(events.Paste(text)))
            self.hide()
            if request_id != self.answered_id:
                self.notify(WITHDRAWN_NOTICE)

    def hide(self) -> None:
        """Hide the panel; no answer is posted."""
        # Nobody should go on reading what was answered elsewhere.
        if isinstance(screen := get_app(self).screen, FullRequestScreen):
            screen.dismiss(None)
        self.request = self._form = self._shown_entry = None
        self._entry.display = False
        self.display = False

    def draw(self) -> None:
        """Redraw everything, after a change of width or theme."""
        form, styles = self._form, self._get_styles()
        width = self.content_size.width
        if form is None or width < 1:
            return
        content = form.get_content(width)
        head = draw_head(form, content.title, self._waiting_count, styles, width)
        choices, self._choice_of_row = draw_choices(form, styles, width, is_ready=self.is_ready)
        has_document = bool(content.document)
        keys = draw_hints(form, styles, width, is_ready=self.is_ready, has_document=has_document)
        about = draw_content(content, Canvas(width, styles, diff=self.diff_view))
        other_rows = (
            RESERVED_ROWS if self.screen.size.height >= SMALL_SCREEN_ROWS else SMALL_RESERVED_ROWS
        )
        free_rows = (
            self.screen.size.height - other_rows - len(head) - len(keys) - (form.entry is not None)
        )
        # The choices come first, but for MIN_ROWS: the content can be scrolled.
        choices_height = min(len(choices), max(free_rows - min(len(about), MIN_ROWS), MIN_ROWS))
        if choices_height < len(choices):
            keys = draw_hints(
                form, styles, width, is_ready=self.is_ready, cuts=True, has_document=has_document
            )
        about_height = min(len(about), max(free_rows - choices_height, 1))
        # A request must not be answered because its end, below blanks, was not noticed.
        if about_height < len(about):
            # The note takes a row.
            about_height = max(about_height - 1, 1)
            counts = about_height, len(about)
            head += [draw_cut_note(*counts, styles, width, has_document=has_document)]
        self.query_one("#request-head", RowsView).show(head, len(head))
        self.query_one("#request-about", RowsView).show(about, about_height)
        choices_view = self.query_one("#request-choices", RowsView)
        choices_view.show(choices, choices_height)
        self.query_one("#request-keys", RowsView).show(keys, len(keys))
        choices_view.is_choice = lambda row: self.is_ready and row < len(self._choice_of_row)
        cursor_rows = [
            row for row, choice in enumerate(self._choice_of_row) if choice == form.cursor
        ]
        choices_view.scroll_to_row(cursor_rows[0], cursor_rows[-1])
        self._show_entry(form)

    def on_resize(self) -> None:
        """Wrap the texts for the new width."""
        self.draw()

    def on_key(self, event: events.Key) -> None:
        """Answer, choose or scroll; a key that came too early goes to the prompt."""
        form = self._form
        # Just answered, and the focus has not moved yet: later keys are for the prompt.
        if form is None:
            event.stop()
            self.post_message(self.InputForPrompt(events.Key(event.key, event.character)))
            return
        is_free = form.entry is None and event.time >= self._early_keys.ready_at
        self._is_command = self._is_command or (is_free and event.character in _COMMAND_PREFIXES)
        # All keys up to when the prompt has the focus belong to the command.
        if self._is_command:
            event.stop()
            event.prevent_default()
            self.post_message(
                self.InputForPrompt(events.Key(event.key, event.character), is_command=True)
            )
        elif form.entry is not None:
            self._handle_entry_key(event, form)
        elif self._early_keys.reject_early_key(event.time):
            event.stop()
            event.prevent_default()
            # The pause begins again with each early key, but not before the question is drawn.
            if self._early_keys.ready_at < float("inf"):
                self._start_pause()
            self._post_early_key(event, form)
        elif self._early_keys.reject_first_enter(event.key):
            event.stop()
            form.notice = DRAFT_NOTICE.format(", or y," if isinstance(form, PermissionForm) else "")
            self.draw()
        elif self._scroll_by_key(event.key) or form.press(event.key):
            event.stop()
            event.prevent_default()
            self._apply_form(form)
        elif event.key == WHOLE_SCREEN_KEY:
            event.stop()
            get_app(self).push_screen(FullRequestScreen(form, self.diff_view, self._get_styles))
        elif event.key == COMMENT_KEY and form.get_content(TITLE_WIDTH).document:
            event.stop()
            event.prevent_default()
            self.post_message(self.CommentWanted())
        elif event.is_printable and event.key != "space" and form.begin_text(event.character or ""):
            event.stop()
            event.prevent_default()
            self._apply_form(form)

    def _post_early_key(self, event: events.Key, form: Form) -> None:
        """Pass a key that came too early to the prompt; in a series of questions,
        hold one that would be an answer.
        """
        key = events.Key(event.key, event.character)
        if self._held_keys is not None and event.key in {
            choice.key for choice in form.list_choices()
        } | {"enter"}:
            self._held_keys.append(key)
            return
        for each in [*(self._held_keys or ()), key]:
            self.post_message(self.InputForPrompt(each))
        self._held_keys = None

    def on_focus(self) -> None:
        """Accept keys as answers again; only after a pause if a command was begun here,
        which may still be typed.
        """
        if self._is_command:
            self._is_command = False
            self._start_pause()
            self.draw()

    def _handle_entry_key(self, event: events.Key, form: Form) -> None:
        """Handle a key during text entry; keys that come before the entry has the
        focus are typed into it.
        """
        if event.key == "escape":
            event.stop()
            form.close_entry(self._entry.value)
            self._apply_form(form)
        elif self.has_focus and event.is_printable:
            event.stop()
            self._entry.insert_text_at_cursor(event.character or "")
        elif self.has_focus and event.key == "enter":
            event.stop()
            self._accept_line(Input.Submitted(self._entry, self._entry.value))

    def on_paste(self, event: events.Paste) -> None:
        """Pass a paste to the prompt: it is not an answer."""
        if self._form is not None and self._form.entry is None:
            event.stop()
            self.post_message(self.InputForPrompt(events.Paste(event.text)))

    @on(RowsView.Pressed)
    def _press_row(self, event: RowsView.Pressed) -> None:
        event.stop()
        form = self._form
        if form is None or event.view.id != "request-choices" or not self.is_ready:
            return
        if event.row < len(self._choice_of_row):
            form.choose(self._choice_of_row[event.row])
            self._apply_form(form)

    @on(Input.Submitted)
    def _accept_line(self, event: Input.Submitted) -> None:
        """Handle a typed line. A command is not an answer to a permission request:
        it goes to the prompt.
        """
        event.stop()
        form, line = self._form, event.value
        if isinstance(form, PermissionForm) and is_command(line):
            form.close_entry()
            form.notice = COMMAND_NOTICE
            self.draw()
            self.post_message(self.InputForPrompt(events.Paste(line), is_command=True))
        elif form is not None:
            form.accept_text(line)
            self._apply_form(form)

    @property
    def _entry(self) -> Input:
        return self.query_one("#request-entry", Input)

    def _wait_for_drawing(self) -> None:
        """Poll until the choices are drawn: before, they can't have been read."""
        if self.query_one("#request-choices", RowsView).is_drawn:
            self._start_pause()
        else:
            self.set_timer(_POLL_SECONDS, self._wait_for_drawing)

    def _start_pause(self) -> None:
        """Start the pause after which keys count as an answer: the question is drawn,
        and must have been read.
        """
        self.set_timer(self._early_keys.start_pause(monotonic()), self.draw)

    def _scroll_by_key(self, key: str) -> bool:
        """Scroll the content if that is what a key does; return whether it is."""
        if key not in _SCROLL_SHARES:
            return False
        view = self.query_one("#request-about", RowsView)
        rows = round(_SCROLL_SHARES[key] * view.size.height) or (1 if key == "shift+down" else -1)
        view.scroll_relative(y=rows, animate=False)
        return True

    def _apply_form(self, form: Form) -> None:
        """Show a key's effect, or post the answer."""
        if form.answer is not None and self.request is not None:
            self._answered_at = monotonic()
            self.post_message(self.Answered(self.request, form.answer))
            self.hide()
        else:
            self.draw()

    def _show_entry(self, form: Form) -> None:
        entry = self._entry
        if form.entry is None:
            if self._shown_entry is not None:
                self._shown_entry = None
                entry.display = False
                self.focus()
            return
        entry.placeholder = form.entry.placeholder
        # Only for another entry: with each redraw the typed text would be replaced
        # by the initial one.
        if self._shown_entry != form.entry:
            self._shown_entry = form.entry
            entry.value = form.entry.text
            entry.cursor_position = len(form.entry.text)
            entry.display = True
            entry.focus()
