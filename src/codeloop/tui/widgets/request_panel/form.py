"""What the forms of the request panel have in common: their protocol,
and the records that they show and return.

A form holds the content and the state of one request, without widgets: `permission_form.py`,
`question_form.py`.
"""

from typing import NamedTuple, Protocol

from msgspec import Struct

from codeloop.client.formatting import TextStyle
from codeloop.schema.permission import AlwaysScope, Reply


class FormTab(NamedTuple):
    """One of several questions, or the last tab, which sends the answers: its name,
    and whether it is answered.
    """

    name: str
    is_answered: bool


class FormChoice(Struct, frozen=True):
    """One choice: its key, its label, and a description beside or below it.

    `is_checked`: whether its box is checked; None: it has no box.
    """

    key: str
    text: str
    detail: str = ""
    is_checked: bool | None = None


class FormEntry(Struct, frozen=True):
    """A text entry: its label, its initial text, and the verb of the hint "enter ...
    it" (`enter_verb`).
    """

    label: str
    text: str = ""
    placeholder: str = ""
    enter_verb: str = "sends"


class FormContent(Struct, frozen=True):
    """The content of a request. `title`: the requested action, or who asks;
    `rows`: the details, each with its style.

    `diff`: the change of a file as a patch; where that is drawn,
    `rows_without_diff` are shown instead of `rows`.
    `document`: a text in Markdown that the request is about, drawn below them.
    """

    title: str
    rows: list[tuple[TextStyle | None, str]]
    diff: str = ""
    rows_without_diff: tuple[tuple[TextStyle | None, str], ...] = ()
    document: str = ""


class FormAnswer(Struct, frozen=True):
    """The user's answer.

    To a permission request: `reply`; `message`: the reason of a rejection, for the model; `always`:
    the patterns that the user edited; `wider`: the user was shown that these allow more than was
    offered; `scope`: where they hold.
    To questions: `answers`, for each question the chosen labels or the user's own words; `reply` is
    `reject` if the user answers none.
    """

    reply: Reply = "once"
    message: str | None = None
    always: tuple[str, ...] | None = None
    wider: bool = False
    scope: AlwaysScope = "directory"
    answers: tuple[tuple[str, ...], ...] = ()


class RepeatedChoice:
    """Detects that a choice is made twice in a row, which risky choices require: a
    single key may be a mistake.
    """

    def __init__(self) -> None:
        self._previous_choice = ""
        self._current_choice = ""

    def begin(self) -> None:
        """Note that a key was pressed, or a row clicked: call this before `record`."""
        self._previous_choice, self._current_choice = self._current_choice, ""

    def record(self, choice: str) -> bool:
        """Record the choice of this key or click; return whether the previous one made the same."""
        self._current_choice = choice
        return self._previous_choice == choice


class Form(Protocol):
    """A request as choices under a cursor.

    `answer`: set once the user has answered. `entry`: the text entry that is open. `notice`: what
    the last key would do if it were pressed again, or why it did nothing.
    """

    cursor: int
    notice: str
    answer: FormAnswer | None
    entry: FormEntry | None

    @property
    def tabs(self) -> tuple[FormTab, ...]:
        """The questions, and a last tab that sends the answers;
        empty if there is only one question.
        """
        ...

    @property
    def tab(self) -> int:
        """The index of the tab that is shown."""
        ...

    @property
    def is_multiple(self) -> bool:
        """Whether several of the choices can be taken."""
        ...

    def get_content(self, width: int) -> FormContent:
        """Return the request's content, in rows of at most `width` cells."""
        ...

    def list_choices(self) -> list[FormChoice]:
        """Return the choices."""
        ...

    def press(self, key: str) -> bool:
        """Handle a key; return whether it has a meaning here."""
        ...

    def choose(self, index: int) -> None:
        """Take the choice with this index in `list_choices`."""
        ...

    def accept_text(self, text: str) -> None:
        """Accept the typed text."""
        ...

    def close_entry(self, text: str = "") -> None:
        """Go back to the choices; the typed text is kept for the next time."""
        ...

    def begin_text(self, text: str) -> bool:
        """Open the text entry with a typed text that is not a key of the form;
        return whether there is an entry.
        """
        ...


CURSOR_STEPS_BY_KEY: dict[str, int] = {
    "up": -1,
    "k": -1,
    "ctrl+p": -1,
    "down": 1,
    "j": 1,
    "ctrl+n": 1,
}
"""The keys that move the cursor, and by how many choices."""
