"""The panel that shows a session's requests to the user; its choices always stay visible.

No key typed before the question could be read answers it: until a pause in typing after the panel was drawn, keys are
handed back (`RequestPanel.Early`) and belong to the prompt. How long the pause is: `keys/typing_rhythm.py`.
"""

from collections.abc import Callable
from time import monotonic

from rich.segment import Segment
from textual import events, on
from textual.app import ComposeResult
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from codeloop.client.permission_text import Asking
from codeloop.client.slash.names import is_command
from codeloop.schema.permission import PermissionRequest
from codeloop.tui.dialogs.parts.dialog import Colours, draw_keys
from codeloop.tui.dialogs.parts.reader import ReadingScreen
from codeloop.tui.keys.early_keys import EarlyKeys
from codeloop.tui.render.canvas import Canvas, DiffView, Row
from codeloop.tui.render.text_rows import wrap_text
from codeloop.tui.state.session_view import Request
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.base import app_of
from codeloop.tui.widgets.line_input import LineInput
from codeloop.tui.widgets.request_panel.form import Form, FormAnswer, FormEntry
from codeloop.tui.widgets.request_panel.form_rows import draw_choices, draw_content, draw_head
from codeloop.tui.widgets.request_panel.permission_form import PermissionForm
from codeloop.tui.widgets.request_panel.question_form import QuestionForm
from codeloop.tui.widgets.rows_view import RowsView

WHOLE_SCREEN = "f"
"""The key that shows the request on the whole screen, and goes back."""
_WIDTH = 200
"""Cells of a title, more than any screen has: it is cut where it is drawn."""


class FullRequest(ReadingScreen):
    """The whole request on a screen of its own, for reading: it is answered in the panel once this is closed."""

    closing = ((WHOLE_SCREEN, "back to the question"),)

    def __init__(self, form: Form, diff: DiffView, colours: Colours) -> None:
        def draw_request(width: int) -> list[Row]:
            return draw_content(form.text(width), Canvas(width, colours(), diff=diff))

        super().__init__(form.text(_WIDTH).title, draw_request, colours)


WITHDRAWN = "A question was answered elsewhere, or withdrawn."
DRAFT = "Text stands in the prompt, so enter may be meant for that. Press enter again, or y, to choose."
A_COMMAND = "That is a command, not an answer: it stands in the prompt."
OTHER_ROWS = 5
"""Screen rows that the panel leaves to other widgets."""
SMALL, FEWEST = 20, 4
"""The rows of a small screen, and how many the panel leaves to other widgets there."""
LEAST = 3
"""Rows of the content that are shown on the smallest screen."""
_POLL = 0.02
"""Seconds between two looks whether the choices are drawn."""
_CUT_NOTES = (
    # The longest that fits is shown; {} are the rows shown and all rows.
    "   {} of {:,} rows are shown: pgdn scrolls, f shows them on the whole screen",
    "   {} of {:,} rows: pgdn scrolls",
)
_REJECT, _WHOLE_SCREEN = ("esc esc", "reject"), ("f", "whole screen")
_SEVERAL = ("←→", "questions")
_HINT = [("↑↓ enter", "choose"), ("pgup pgdn", "scroll")]
_MARKING = [("space or enter", "mark"), ("enter again", "go on")]
_COMMANDS = ("/", "!")
"""The prefix of a command, which can run despite the question."""
_SCROLLS = {"pageup": -1.0, "pagedown": 1.0, "ctrl+u": -0.5, "ctrl+d": 0.5, "shift+up": 0.0, "shift+down": 0.0}


class Answered(Message, namespace="request_panel"):
    """The user answered; `send_answer` delivers it."""

    def __init__(self, request: Request, answer: FormAnswer) -> None:
        super().__init__()
        self.request = request
        self.answer = answer


class Early(Message, namespace="request_panel"):
    """A key or a paste from before the question could be read, so not meant for the panel.

    `is_command`: it starts a command, so later keys are for the prompt, too.
    """

    def __init__(self, event: events.Key | events.Paste, *, is_command: bool = False) -> None:
        super().__init__()
        self.event = event
        self.is_command = is_command


class RequestPanel(Widget, can_focus=True):
    """Shows one request at a time; hidden without one.

    `colours` gives the styles of the theme in use; `silence`: the seconds without a key, after the first drawing, until
    keys count as an answer. A key restarts them.
    """

    DEFAULT_CSS = """
    RequestPanel { height: auto; display: none; padding: 0 1; layout: vertical; background: $background-panel; }
    RequestPanel Input { height: 1; border: none; padding: 0 2; background: transparent; display: none; }
    RequestPanel Input:focus { border: none; background-tint: transparent; }
    """

    answered_id = ""
    """The request last answered in this program, here or in another tab, for which no notice is shown."""

    # Where handlers find them: @on(RequestPanel.Answered).
    Answered = Answered
    Early = Early

    def __init__(self, colours: Callable[[], Styles], silence: Callable[[], float]) -> None:
        super().__init__()
        self._early = EarlyKeys(silence)
        self.request: Request | None = None
        self._colours = colours
        self._form: Form | None = None
        """The state of the request that is shown."""
        self._waiting = 1
        """How many requests wait, with this one."""
        self._owners: list[int] = []
        """Which choice each row of the choices belongs to."""
        self._is_command = False
        """Whether a command was begun with `/` or `!`: its keys go to the prompt."""
        self._typing: FormEntry | None = None
        """The text entry that is shown."""
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
        """Whether keys answer."""
        return monotonic() >= self._early.ready_at

    def show(self, request: Request, asking: Asking, waiting: int = 1, *, has_draft: bool = False) -> None:
        """Ask; `waiting`: how many requests wait, with this one. The same request again only updates that number.

        `has_draft`: the prompt holds text.
        """
        self._waiting = waiting
        if self.request is None or self.request.id != request.id:
            self.request = request
            is_permission = isinstance(request, PermissionRequest)
            self._form = PermissionForm(request, asking) if is_permission else QuestionForm(request, asking)
            self._early.begin(has_draft=has_draft)
            self.display = True
            self.focus()
            self.query_one("#request-choices", RowsView).is_drawn = False
            self._wait_for_drawing()
        self.draw()

    def withdraw(self, request_id: str) -> None:
        """Hide the panel if it shows this request; typed text goes to the prompt."""
        if self.request is not None and self.request.id == request_id:
            text = self._entry.value if self._form is not None and self._form.entry is not None else ""
            if text and isinstance(self._form, QuestionForm):
                self.post_message(self.Early(events.Paste(text)))
            self.hide()
            if request_id != self.answered_id:
                self.notify(WITHDRAWN)

    def hide(self) -> None:
        """Show nothing."""
        if isinstance(screen := app_of(self).screen, FullRequest):
            screen.dismiss(None)
        self.request = self._form = self._typing = None
        self._entry.display = False
        self.display = False

    def draw(self) -> None:
        """Redraw everything, after a change of width or theme."""
        form, styles = self._form, self._colours()
        width = self.content_size.width
        if form is None or width < 1:
            return
        text, canvas = form.text(width), Canvas(width, styles, diff=self.diff_view)
        head = draw_head(form, text.title, self._waiting, styles, width)
        choices, self._owners = draw_choices(form, styles, width, is_ready=self.is_ready)
        keys = _hint_rows(form, styles, width, is_ready=self.is_ready)
        about = draw_content(text, canvas)
        other_rows = OTHER_ROWS if self.screen.size.height >= SMALL else FEWEST
        most = self.screen.size.height - other_rows - len(head) - len(keys) - (form.entry is not None)
        foot_height = min(len(choices), max(most - min(len(about), LEAST), LEAST))
        if foot_height < len(choices):
            keys = _hint_rows(form, styles, width, is_ready=self.is_ready, cuts=True)
        height = min(len(about), max(most - foot_height, 1))
        if height < len(about):  # a request must not be answered because its end, below blanks, was not noticed
            height = max(height - 1, 1)
            notes = [each.format(height, len(about)) for each in _CUT_NOTES]
            note = next((each for each in notes if len(each) <= width), notes[-1][:width])
            head = [*head, [Segment(note, styles.of("warning"))]]
        self.query_one("#request-head", RowsView).show(head, len(head))
        self.query_one("#request-about", RowsView).show(about, height)
        view = self.query_one("#request-choices", RowsView)
        view.show(choices, foot_height)
        self.query_one("#request-keys", RowsView).show(keys, len(keys))
        view.is_choice = lambda row: self.is_ready and row < len(self._owners)
        mine = [row for row, owner in enumerate(self._owners) if owner == form.cursor]
        view.scroll_to_row(mine[0], mine[-1])
        self._show_entry(form)

    def on_resize(self) -> None:
        """Wrap the texts for the new width."""
        self.draw()

    def on_key(self, event: events.Key) -> None:
        """Answer, choose, scroll; hand a key that came too early back to the prompt."""
        form = self._form
        if form is None:  # just answered: later keys are for the prompt
            event.stop()
            self.post_message(self.Early(events.Key(event.key, event.character)))
            return
        is_free = form.entry is None and event.time >= self._early.ready_at
        self._is_command = self._is_command or (is_free and event.character in _COMMANDS)
        if self._is_command:  # until the prompt has the focus
            event.stop()
            event.prevent_default()
            self.post_message(self.Early(events.Key(event.key, event.character), is_command=True))
        elif form.entry is not None:
            self._take_typing(event, form)
        elif self._early.is_early(event.time):
            event.stop()
            event.prevent_default()
            if self._early.ready_at < float("inf"):
                self._wait()
            self.post_message(self.Early(events.Key(event.key, event.character)))
        elif self._early.doubts(event.key):
            event.stop()
            form.notice = DRAFT
            self.draw()
        elif self._scroll_key(event.key) or form.press(event.key):
            event.stop()
            event.prevent_default()
            self._apply_form(form)
        elif event.key == WHOLE_SCREEN:
            event.stop()
            app_of(self).push_screen(FullRequest(form, self.diff_view, self._colours))
        elif event.is_printable and event.key != "space" and form.begin_words(event.character or ""):
            event.stop()
            event.prevent_default()
            self._apply_form(form)

    def on_focus(self) -> None:
        """Accept keys as answers again; after a pause if a command was started here and may still be typed."""
        if self._is_command:
            self._is_command = False
            self._wait()
            self.draw()

    def _take_typing(self, event: events.Key, form: Form) -> None:
        """Handle a key during text entry: keys from before the entry was mounted become its start."""
        if event.key == "escape":
            event.stop()
            form.leave_entry(self._entry.value)
            self._apply_form(form)
        elif self.has_focus and event.is_printable:
            event.stop()
            self._entry.insert_text_at_cursor(event.character or "")
        elif self.has_focus and event.key == "enter":
            event.stop()
            self._take_line(Input.Submitted(self._entry, self._entry.value))

    def on_paste(self, event: events.Paste) -> None:
        """Hand a paste back to the prompt: it answers nothing."""
        if self._form is not None and self._form.entry is None:
            event.stop()
            self.post_message(self.Early(events.Paste(event.text)))

    @on(RowsView.Pressed)
    def _press_row(self, event: RowsView.Pressed) -> None:
        event.stop()
        form = self._form
        if form is None or event.view.id != "request-choices" or not self.is_ready:
            return
        if event.row < len(self._owners):
            form.choose(self._owners[event.row])
            self._apply_form(form)

    @on(Input.Submitted)
    def _take_line(self, event: Input.Submitted) -> None:
        """Handle a typed line. A command is no answer to a permission request: it goes to the prompt."""
        event.stop()
        form, line = self._form, event.value
        if isinstance(form, PermissionForm) and is_command(line):
            form.leave_entry()
            form.notice = A_COMMAND
            self.draw()
            self.post_message(self.Early(events.Paste(line), is_command=True))
        elif form is not None:
            form.take_text(line)
            self._apply_form(form)

    @property
    def _entry(self) -> Input:
        return self.query_one("#request-entry", Input)

    def _wait_for_drawing(self) -> None:
        """Poll until the choices are drawn: only then can they be read."""
        if self.query_one("#request-choices", RowsView).is_drawn:
            self._wait()
        else:
            self.set_timer(_POLL, self._wait_for_drawing)

    def _wait(self) -> None:
        """Start the wait until the question can have been read, now that it is drawn."""
        self.set_timer(self._early.wait_from(monotonic()), self.draw)

    def _scroll_key(self, key: str) -> bool:
        if key not in _SCROLLS:
            return False
        view = self.query_one("#request-about", RowsView)
        rows = round(_SCROLLS[key] * view.size.height) or (1 if key == "shift+down" else -1)
        view.scroll_relative(y=rows, animate=False)
        return True

    def _apply_form(self, form: Form) -> None:
        """Show a key's effect, or post the answer."""
        if form.answer is not None and self.request is not None:
            self.post_message(self.Answered(self.request, form.answer))
            self.hide()
        else:
            self.draw()

    def _show_entry(self, form: Form) -> None:
        entry = self._entry
        if form.entry is None:
            if self._typing is not None:
                self._typing = None
                entry.display = False
                self.focus()
            return
        entry.placeholder = form.entry.placeholder
        if self._typing != form.entry:
            self._typing = form.entry
            entry.value = form.entry.text
            entry.cursor_position = len(form.entry.text)
            entry.display = True
            entry.focus()


def _hint_rows(form: Form, styles: Styles, width: int, *, is_ready: bool, cuts: bool = False) -> list[Row]:
    """Return the row of key hints; `cuts`: not all choices fit, so it begins with the number of the marked one."""
    if form.entry is not None:
        label = f"{form.entry.label}  (enter {form.entry.does} it, esc goes back)"
        return [[Segment(line, styles.of("primary"))] for line in wrap_text(label, width)]
    if form.notice:
        return [[Segment(line, styles.of("warning", "bold"))] for line in wrap_text(form.notice, width)]
    if not is_ready:
        return [[]]
    keys = [*(_MARKING if form.is_marking else _HINT), _SEVERAL if form.tabs else _WHOLE_SCREEN, _REJECT]
    position = f"{form.cursor + 1} of {len(form.rows())} ↕  " if cuts else ""
    room = width - len(position)
    rows = next(
        rows
        for some in (keys, [_HINT[0], _REJECT], [_REJECT])
        if len(rows := draw_keys(some, styles, room)) == 1 or len(some) == 1
    )
    return [[Segment(position, styles.of("warning")), *rows[0]], *rows[1:]] if position else rows
