"""What a panel shows of a request, and what came of it. Pure: the forms know nothing of widgets."""

from typing import Protocol

from msgspec import Struct

from codeloop.client.numbers import Look
from codeloop.schema.permission import PermissionRequest, Reply
from codeloop.schema.question import QuestionRequest

Request = PermissionRequest | QuestionRequest


class FormRow(Struct, frozen=True):
    """One choice: the key that takes it, its words, and what is said below them. `is_on`: a box that is checked."""

    key: str
    text: str
    detail: str = ""
    is_on: bool | None = None


class FormEntry(Struct, frozen=True):
    """A line that is to be typed: what for, what stands in it at first, and what Enter does with it."""

    label: str
    text: str = ""
    placeholder: str = ""
    does: str = "sends"


class FormText(Struct, frozen=True):
    """`title`: what will happen, in our own words; `rows`: what it is about, each with its look.

    `diff`: the change that it is about; `rest`: the rows without it, for where it is drawn as a diff.
    """

    title: str
    rows: list[tuple[Look | None, str]]
    diff: str = ""
    rest: tuple[tuple[Look | None, str], ...] = ()


class FormAnswer(Struct, frozen=True):
    """What the user answered.

    To a permission request: `reply`, with `message` for the model if it is rejected with words, and `always`: what is
    to be remembered if that was edited (`wider`: it was seen that this allows more than was offered).
    To questions: `answers`, for each the chosen labels or the user's words; `reply` is `reject` if they refuse.
    """

    reply: Reply = "once"
    message: str | None = None
    always: tuple[str, ...] | None = None
    wider: bool = False
    answers: tuple[tuple[str, ...], ...] = ()


class SecondTime:
    """Remembers what a key or a click asked for: some things are only done when asked for twice in a row."""

    def __init__(self) -> None:
        self._before = ""
        self._now = ""

    def begin(self) -> None:
        """Take up that something is pressed."""
        self._before, self._now = self._now, ""

    def of(self, wish: str) -> bool:
        """Return whether the press before this one asked for the same."""
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
        """Return the request's content in rows of at most `width` cells."""
        ...

    def rows(self) -> list[FormRow]:
        """Return the choices."""
        ...

    def press(self, key: str) -> bool:
        """Take a key; return whether it means something here."""
        ...

    def choose(self, row: int) -> None:
        """Take the choice of a row."""
        ...

    def take_text(self, text: str) -> None:
        """Take the line that was asked for."""
        ...

    def leave_entry(self, typed: str = "") -> None:
        """Go back to the choices; what was typed so far stands there again the next time."""
        ...

    def begin_words(self, text: str) -> bool:
        """Take what is no key here as the beginning of words; return whether there is a line for them."""
        ...


MOVES: dict[str, int] = {"up": -1, "k": -1, "ctrl+p": -1, "down": 1, "j": 1, "ctrl+n": 1}
