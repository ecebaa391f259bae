"""Forms: the content and state of a request in the panel. Pure: without widgets."""

from typing import Protocol

from msgspec import Struct

from codeloop.client.numbers import Look
from codeloop.schema.permission import Reply


class FormRow(Struct, frozen=True):
    """One choice: its key, its label, and a description below. `is_on`: a checked box."""

    key: str
    text: str
    detail: str = ""
    is_on: bool | None = None


class FormEntry(Struct, frozen=True):
    """A text entry: its purpose, its initial text, and Enter's effect."""

    label: str
    text: str = ""
    placeholder: str = ""
    does: str = "sends"


class FormText(Struct, frozen=True):
    """`title`: what will happen; `rows`: the details, each with its look.

    `diff`: the change; `rows_without_diff`: the rows for when that is drawn as a diff.
    """

    title: str
    rows: list[tuple[Look | None, str]]
    diff: str = ""
    rows_without_diff: tuple[tuple[Look | None, str], ...] = ()


class FormAnswer(Struct, frozen=True):
    """What the user answered.

    To a permission request: `reply`, with `message` for the model if rejected with a reason, and `always`: the edited
    patterns (`wider`: the user saw that they allow more than was offered).
    To questions: `answers`, for each the chosen labels or own words; `reply` is `reject` for a refusal.
    """

    reply: Reply = "once"
    message: str | None = None
    always: tuple[str, ...] | None = None
    wider: bool = False
    answers: tuple[tuple[str, ...], ...] = ()


class SecondTime:
    """Detects a repeated key or click: some actions need two in a row."""

    def __init__(self) -> None:
        self._before = ""
        self._now = ""

    def begin(self) -> None:
        """Note a new press."""
        self._before, self._now = self._now, ""

    def of(self, wish: str) -> bool:
        """Return whether the previous press had the same wish."""
        self._now = wish
        return self._before == wish


class Form(Protocol):
    """A request as choices under a cursor; `notice` is a remark on the last key."""

    cursor: int
    notice: str
    answer: FormAnswer | None
    entry: FormEntry | None

    @property
    def tabs(self) -> tuple[tuple[str, bool], ...]:
        """The names of its questions, and whether each is answered; empty if there is only one."""
        ...

    @property
    def tab(self) -> int:
        """The question that is shown."""
        ...

    @property
    def is_marking(self) -> bool:
        """Whether several of the choices can be taken."""
        ...

    def text(self, width: int) -> FormText:
        """Return the request's content, in rows of at most `width` cells."""
        ...

    def rows(self) -> list[FormRow]:
        """Return the choices."""
        ...

    def press(self, key: str) -> bool:
        """Take a key; return whether it means something here."""
        ...

    def choose(self, row: int) -> None:
        """Choose a row."""
        ...

    def take_text(self, text: str) -> None:
        """Accept the typed text."""
        ...

    def leave_entry(self, text: str = "") -> None:
        """Go back to the choices; the typed text is kept for the next time."""
        ...

    def begin_words(self, text: str) -> bool:
        """Start the text entry with text that is no key here; return whether there is one."""
        ...


MOVES: dict[str, int] = {"up": -1, "k": -1, "ctrl+p": -1, "down": 1, "j": 1, "ctrl+n": 1}
