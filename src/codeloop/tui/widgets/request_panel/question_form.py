"""The form of the model's questions: options of which one or several can be chosen,
or the user's own words.

Several questions are shown as tabs, with a last tab that sends the answers.
"""

from codeloop.client.formatting import TextStyle
from codeloop.client.questions.quoting import MAX_FULL_ROWS, quote_text
from codeloop.client.questions.requester import Requester
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.question import QuestionInfo, QuestionRequest
from codeloop.tui.widgets.request_panel.form import (
    CURSOR_STEPS_BY_KEY,
    FormAnswer,
    FormChoice,
    FormContent,
    FormEntry,
    FormTab,
    RepeatedChoice,
)

CONFIRM_REJECT_NOTICE = "Press esc again to answer nothing and stop the {}."
OWN_WORDS_LABEL = "Your own words"
SEND_LABEL = "Send these answers"
_OWN_KEY = "t"
"""The key that opens the entry for the user's own words."""
_MAX_LABEL_LENGTH = 400
"""Characters of an option or an answer that are shown."""


class QuestionForm:
    """The choices made for each question, and which question is shown."""

    def __init__(self, request: QuestionRequest, requester: Requester) -> None:
        self.cursor = 0
        self.notice = ""
        self.answer: FormAnswer | None = None
        self.entry: FormEntry | None = None
        self.tab = 0
        self._request = request
        self._requester = requester
        self._selections: list[list[str]] = [[] for _ in request.questions]
        """The labels chosen for each question."""
        self._own_words = [""] * len(request.questions)
        """The user's own words for each question."""
        self._partial_answers: dict[int, str] = {}
        """The unfinished words that the user left to go back to the options,
        by the question's index.
        """
        self._repeated_choice = RepeatedChoice()

    @property
    def tabs(self) -> tuple[FormTab, ...]:
        """The questions, and a last tab that sends the answers; empty for a single question."""
        questions = self._request.questions
        if len(questions) < 2:
            return ()
        tabs = (
            FormTab(
                one_line(question.header or f"Question {index + 1}", 20),
                bool(self._list_answers(index)),
            )
            for index, question in enumerate(questions)
        )
        return (*tabs, FormTab("Send", is_answered=False))

    @property
    def is_multiple(self) -> bool:
        """Whether several options of the question that is shown can be taken."""
        return self._question is not None and bool(self._question.multiple)

    @property
    def _question(self) -> QuestionInfo | None:
        """The question that is shown; None: the tab that sends the answers is."""
        return (
            self._request.questions[self.tab] if self.tab < len(self._request.questions) else None
        )

    def get_content(self, width: int) -> FormContent:
        """Return the question, or in the last tab all answers."""
        rows: list[tuple[TextStyle | None, str]] = []
        who = f"The {self._requester.subagent or 'model'} asks"
        if self._question is not None:
            rows = _apply_style("bold", quote_text(self._question.question, width, MAX_FULL_ROWS))
            return FormContent(
                who, rows, document=self._question.document.text if self._question.document else ""
            )
        for number, question in enumerate(self._request.questions):
            rows += _apply_style(None, quote_text(question.question, width, 3))
            answer = ", ".join(self._list_answers(number)) or "(no answer)"
            rows += _apply_style("bold", quote_text(f"  → {answer}", width, 3))
        return FormContent(f"{who}. These are your answers", rows)

    def list_choices(self) -> list[FormChoice]:
        """Return the options of the question that is shown."""
        question = self._question
        if question is None:
            return [FormChoice("1", SEND_LABEL)]
        selected_labels, is_multiple = self._selections[self.tab], bool(question.multiple)
        # Where one option can be taken, boxes are shown once it is.
        has_boxes = is_multiple or bool(selected_labels)
        choices = [
            FormChoice(
                # A key is one digit; further options are reached with the cursor.
                key=str(number) if number < 10 else "",
                text=one_line(option.label, _MAX_LABEL_LENGTH),
                detail=one_line(option.description, _MAX_LABEL_LENGTH),
                is_checked=option.label in selected_labels if has_boxes else None,
            )
            for number, option in enumerate(question.options, 1)
        ]
        if question.custom is not False:
            own_words = self._own_words[self.tab]
            text = OWN_WORDS_LABEL
            if own_words:
                text = f"{OWN_WORDS_LABEL}: {one_line(own_words, _MAX_LABEL_LENGTH)}"
            has_box = is_multiple or bool(own_words)
            choices.append(
                FormChoice(_OWN_KEY, text, is_checked=bool(own_words) if has_box else None)
            )
        if is_multiple:
            choices.append(FormChoice("", "Go on" if self.tabs else SEND_LABEL))
        return choices

    def press(self, key: str) -> bool:
        """Handle a key; return whether it has a meaning here.
        Escape only refuses when it is pressed twice.
        """
        choices = self.list_choices()
        self._repeated_choice.begin()
        self.notice = ""
        tab_count = len(self.tabs)
        if key in CURSOR_STEPS_BY_KEY:
            self.cursor = (self.cursor + CURSOR_STEPS_BY_KEY[key]) % len(choices)
        elif key == "enter" and self._would_undo(choices[self.cursor]):
            self._show_next_question()
        elif key in {"enter", "space"}:
            self.choose(self.cursor)
        elif key in {"left", "right", "tab", "shift+tab"} and tab_count:
            self._show_question((self.tab + (1 if key in {"right", "tab"} else -1)) % tab_count)
        elif (index := self._find_choice(key)) is not None:
            self.choose(index)
        elif key == "escape" and self._repeated_choice.record("reject"):
            self.answer = FormAnswer("reject")
        elif key == "escape":
            self.notice = CONFIRM_REJECT_NOTICE.format(
                "subagent" if self._requester.subagent else "turn"
            )
        else:
            return False
        return True

    def choose(self, index: int) -> None:
        """Take an option, or ask for the user's own words, or go on."""
        self.cursor = index
        question = self._question
        if question is None:
            self._send()
            return
        if index < len(question.options):
            self._take_choice(question, question.options[index].label)
        elif self.list_choices()[index].key == _OWN_KEY:
            self.entry = FormEntry(
                "Your answer:", self._partial_answers.get(self.tab) or self._own_words[self.tab]
            )
        else:
            self._show_next_question()

    def begin_text(self, text: str) -> bool:
        """Open the entry of the user's own words with a typed text that is not a key;
        return whether there is one.
        """
        index = self._find_choice(_OWN_KEY)
        if index is None:
            return False
        self.cursor = index
        self.entry = FormEntry("Your answer:", self._partial_answers.get(self.tab, "") + text)
        return True

    def accept_text(self, text: str) -> None:
        """Set the user's own words; empty removes them."""
        self.entry = None
        self._partial_answers.pop(self.tab, None)
        question = self._question
        self._own_words[self.tab] = text.strip()
        # Of several that can be chosen, the words are one more;
        # else they replace the chosen option.
        if question is not None and not question.multiple and text.strip():
            self._selections[self.tab] = []
            self._show_next_question()

    def close_entry(self, text: str = "") -> None:
        """Go back to the options; the typed text is kept for the next time."""
        self.entry = None
        self._partial_answers[self.tab] = text

    def _would_undo(self, choice: FormChoice) -> bool:
        """Return whether Enter would undo a choice made among several: then
        it continues instead.
        """
        return bool(choice.is_checked and self.is_multiple)

    def _find_choice(self, key: str) -> int | None:
        """Return the index of the choice with this key; None: there is none."""
        return next(
            (index for index, choice in enumerate(self.list_choices()) if choice.key == key), None
        )

    def _take_choice(self, question: QuestionInfo, label: str) -> None:
        labels = self._selections[self.tab]
        if not question.multiple:
            self._selections[self.tab], self._own_words[self.tab] = [label], ""
            self._show_next_question()
        elif label in labels:
            labels.remove(label)
        else:
            labels.append(label)

    def _list_answers(self, number: int) -> list[str]:
        """Return the answer to a question: the options in their order, then the user's words."""
        labels = [option.label for option in self._request.questions[number].options]
        selected_labels = sorted(set(self._selections[number]), key=labels.index)
        return [*selected_labels, *([self._own_words[number]] if self._own_words[number] else [])]

    def _show_next_question(self) -> None:
        """Show the next question without an answer, or the last tab;
        if there is only one question, send the answer.
        """
        if not self.tabs:
            self._send()
            return
        # From here on, and then from the first question: an earlier one may have been skipped.
        question_count = len(self._selections)
        order = [*range(self.tab + 1, question_count), *range(self.tab)]
        self._show_question(
            next((number for number in order if not self._list_answers(number)), question_count)
        )

    def _send(self) -> None:
        for number, question in enumerate(self._request.questions):
            if not self._list_answers(number):
                self._show_question(number)
                own_words = "" if question.custom is False else ", or answer in your own words"
                self.notice = f"Choose at least one{own_words}."
                return
        self.answer = FormAnswer(
            answers=tuple(
                tuple(self._list_answers(number)) for number in range(len(self._selections))
            )
        )

    def _show_question(self, tab: int) -> None:
        self.tab = tab
        self.cursor = 0
        question = self._question
        # The cursor is on the option that was taken before.
        if question is not None and not question.multiple and self._selections[tab]:
            labels = [option.label for option in question.options]
            self.cursor = labels.index(self._selections[tab][0])


def _apply_style(style: TextStyle | None, rows: list[str]) -> list[tuple[TextStyle | None, str]]:
    return [(style, row) for row in rows]
