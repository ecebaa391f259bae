"""`/plan`: shows the model's plan line by line,
and sends the user's comments on lines to the model.
"""

from collections.abc import Sequence

from codeloop.client.client import Client
from codeloop.client.questions.quoting import wrap_line
from codeloop.schema.api.answers import QUESTION_REPLY, AnswerQuestion
from codeloop.schema.api.files import FILE_READ, FileQuery
from codeloop.schema.errors import UsageProblem
from codeloop.schema.part import ToolPart
from codeloop.schema.question import QuestionRequest
from codeloop.tui.actions.send import send_prompt
from codeloop.tui.actions.show_dialog import show_dialog
from codeloop.tui.dialogs.parts.confirm import Confirm
from codeloop.tui.dialogs.parts.dialog import GetStyles
from codeloop.tui.dialogs.parts.pick import Pick, PickAction, PickSource
from codeloop.tui.dialogs.parts.text_input import TextInput
from codeloop.tui.dialogs.picker import Picker
from codeloop.tui.state.session_view import SessionView
from codeloop.tui.ui import Ui
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry

_PLANS_FOLDER = ".codeloop/plans/"
_SEND_CHOICE = 0
"""The picker's result for sending the comments; the other results are line numbers, from 1."""


class PlanPicker(Picker[int]):
    """The lines of a plan with their comments; closes with the line to comment on,
    or `_SEND_CHOICE`.
    """

    def __init__(
        self,
        name: str,
        lines: Sequence[str],
        comments: dict[int, str],
        start: int,
        get_styles: GetStyles,
    ) -> None:
        self._lines, self._comments = lines, comments
        source = PickSource(
            title=f"{name}: comments for the model",
            load=self._load_lines,
            start=start,
            actions=(
                PickAction("ctrl+s", "send", self._send),
                PickAction("ctrl+d", "remove", self._remove),
            ),
            empty_message="The plan is empty.",
            choose_label="comment",
        )
        super().__init__(source, get_styles)

    async def _load_lines(self) -> Sequence[Pick[int]]:
        # The cursor's mark, the number, and the border take the rest.
        room = max(self.compute_box_width(self.size.width) - 16, 20)
        return [
            Pick(
                number,
                # A long line takes several rows; each stands for the whole line.
                f"{number if is_first else '':>4}  {piece}",
                self._comments.get(number, "") if is_first else "",
                mark="●" if is_first and number in self._comments else "",
                detail_colour="warning",
                keeps_blanks=True,
            )
            for number, line in enumerate(self._lines, 1)
            for is_first, piece in _wrap_plan_line(line, room)
        ]

    async def _send(self, _line: int | None) -> bool:
        self.dismiss(_SEND_CHOICE)
        return False

    async def _remove(self, line: int | None) -> bool:
        return line is not None and self._comments.pop(line, None) is not None


async def comment_on_plan(ui: Ui, _words: str) -> None:
    """Show the latest plan of the session line by line,
    and send the comments that the user makes on lines.
    """
    client, view = ui.client, ui.tab.view
    question = _find_question(view) if view is not None else None
    name = ""
    if view is not None:
        name = (
            question.questions[0].document.path
            if question and question.questions[0].document
            else _find_plan(view)
        )
    if view is None or not name:
        raise UsageProblem(
            "There is no plan in this session yet. Switch to the agent `plan` and ask for one."
        )
    lines = (await client.call(FILE_READ, FileQuery(path=name))).content.split("\n")
    comments, line = dict[int, str](), 1
    # The picker closes for each comment, and opens again on the same line.
    while (
        choice := await show_dialog(
            ui, PlanPicker(name, lines, comments, line, lambda: ui.appearance.styles)
        )
    ) != _SEND_CHOICE:
        if choice is None:
            text = f"{len(comments)} not sent yet."
            if not comments or await show_dialog(
                ui, Confirm("Drop the comments?", text, "drop", lambda: ui.appearance.styles)
            ):
                return
            continue
        line = choice
        line_input = TextInput(
            f"Comment on line {line}",
            lambda: ui.appearance.styles,
            comments.get(line, ""),
            about=lines[line - 1],
        )
        if text := (await show_dialog(ui, line_input) or "").strip():
            comments[line] = text
    if comments:
        await _send_comments(
            ui,
            client,
            view,
            "\n\n".join(
                _format_comment(name, lines, number, comments[number])
                for number in sorted(comments)
            ),
        )


async def _send_comments(ui: Ui, client: Client, view: SessionView, text: str) -> None:
    """Answer the question whether the plan may be carried out; without one, send a prompt."""
    request = _find_question(view)
    if request is not None:
        await client.call(QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=[[text]]))
        return
    ui.start_task(send_prompt(ui, ui.tab, PromptEntry(text), "steer"))


def _find_question(view: SessionView) -> QuestionRequest | None:
    """Return the question whether the plan may be carried out,
    if it waits: one with this header.
    """
    waiting = (each for each in view.requests.values() if isinstance(each, QuestionRequest))
    return next(
        (each for each in waiting if [one.header for one in each.questions] == ["Plan"]), None
    )


def _wrap_plan_line(line: str, room: int) -> list[tuple[bool, str]]:
    """Return the rows of a line of the plan, each with whether it is the first.
    Its indentation is kept in all rows.
    """
    line = line.expandtabs(4)
    indent = line[: len(line) - len(line.lstrip())][: room // 2]
    first, *rest = wrap_line(line, room) or [""]
    return [(True, first), *((False, f"{indent}{piece}") for piece in rest)]


def _format_comment(name: str, lines: Sequence[str], number: int, comment: str) -> str:
    """Format a comment in the form that `plan_exit` reads."""
    return f"About @{name} line {number}:\n```\n{lines[number - 1]}\n```\n{comment}"


def _find_plan(view: SessionView) -> str:
    """Return the path of the plan that a call named last, from the project's folder;
    "": there is none.
    """
    plan = ""
    for message_id in view.log.ids:
        for part in view.log.messages[message_id].parts.values():
            path = part.state.input.get("filePath") if isinstance(part, ToolPart) else None
            if isinstance(path, str) and path.endswith(".md") and _PLANS_FOLDER in f"/{path}":
                plan = _PLANS_FOLDER + path.rpartition(_PLANS_FOLDER)[2]
    return plan
