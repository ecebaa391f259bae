"""Asks the user at a terminal for permissions, answers to questions of the model,
and trust in a project.

It is imported when there is something to ask.
"""

import re
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from codeloop.app.settings import ProjectSettings
from codeloop.cli.output.markdown import Markdown
from codeloop.cli.output.markdown_table import SGR_PATTERN, wrap_painted
from codeloop.cli.output.streams import OutputStream
from codeloop.cli.output.style import has_colour, paint
from codeloop.cli.questions.prompter import Prompter, ask_line
from codeloop.cli.questions.trust_text import format_trust_question
from codeloop.cli.questions.typed_answers import parse_choice, parse_reply
from codeloop.client.client import Client
from codeloop.client.questions.always_scopes import is_broad, list_scopes
from codeloop.client.questions.permission_text import describe_request
from codeloop.client.questions.permission_titles import describe_always
from codeloop.client.questions.quoting import (
    CUT_MARK,
    MAX_FULL_ROWS,
    QUOTE_MARK,
    WRAP_MARK,
    quote_text,
    wrap_line,
)
from codeloop.client.questions.requester import Requester, find_requester
from codeloop.client.slash.commands import is_command
from codeloop.config.trust.store import TrustChange
from codeloop.kit.text.terminal_text import escape_answer_controls, one_line
from codeloop.schema.permission import AlwaysScope, PermissionRequest, Reply
from codeloop.schema.question import QuestionInfo, QuestionRequest
from codeloop.schema.wire import replace

VIEW_ALL_LINE = "  v  view all of it\n"
_WIDEN_LINE = "  w  let always mean more\n"
_WIDEN_WORDS = frozenset({"w", "wider", "widen"})
# About so many rows of a question are not the text of a model: title, answers, prompt.
FRAME_ROWS = 9
# Rows of such a text that are shown on the smallest screen.
MIN_TEXT_ROWS = 6


class TerminalAnswer(NamedTuple):
    """An answer to a request. `message`: words for the model. `always`: what is allowed;
    None: what was offered.

    `scope`: where that holds.
    """

    reply: Reply
    message: str | None = None
    always: list[str] | None = None
    scope: AlwaysScope = "directory"


async def ask_permission(
    prompter: Prompter, client: Client, request: PermissionRequest
) -> TerminalAnswer:
    """Ask for a permission, until the answer is clear. A broad "always" must be given twice."""
    requester = await find_requester(client, request)
    scopes, index, is_full = list_scopes(request), 0, False
    problem, confirmed = "", ("", -1)
    while True:
        always = list(scopes[index]) if scopes else []
        can_widen = len(scopes) > 1
        shown_request = replace(request, always=always)
        question = _make_permission_question(
            shown_request, requester, is_full=is_full, can_widen=can_widen
        )
        line = await prompter.ask(
            f"{question.text}{problem}{question.letters}, or what to do instead: "
        )
        problem = ""
        if line is None:
            return TerminalAnswer("reject")
        if is_command(line):
            problem = _queue_command(prompter, line)
            continue
        if _asks_for_all(line) and question.is_cut:
            is_full = True
            continue
        if can_widen and line.strip().lower() in _WIDEN_WORDS:
            index = (index + 1) % len(scopes)
            continue
        match parse_reply(line, always=question.has_always):
            case "yes":
                return TerminalAnswer("once")
            case "session" | "always" as choice if is_broad(
                request.permission, always
            ) and confirmed != (
                choice,
                index,
            ):
                confirmed = (choice, index)
                problem = _make_broad_problem(shown_request, choice)
            case "session" | "always" as choice:
                scope = "session" if choice == "session" else "directory"
                return TerminalAnswer(
                    "always", None, always if always != request.always else None, scope
                )
            case "no":
                return TerminalAnswer("reject")
            case "words":
                return TerminalAnswer("reject", line.strip())
            case "unclear":
                problem = f"“{one_line(line, 40)}” is not an answer here.\n" if line.strip() else ""


def _make_broad_problem(request: PermissionRequest, choice: Literal["session", "always"]) -> str:
    """Return why a broad answer must be given again."""
    effect = describe_always(request, for_session=choice == "session")
    scope = "for this session" if choice == "session" else "from now on"
    return f"That is broad: {effect}. Answer {choice[0]} again to allow it {scope}.\n"


class _ShownQuestion(NamedTuple):
    """A permission request as it is asked.

    `letters`: the letters that may be typed, such as `y, n`, with `v` to view all of it.
    `has_always`: `always` is an answer, and so is `session`.
    `is_cut`: only a part of the request's text is shown.
    """

    text: str
    letters: str
    has_always: bool
    is_cut: bool


def _make_permission_question(
    request: PermissionRequest, requester: Requester, *, is_full: bool, can_widen: bool
) -> _ShownQuestion:
    """Make the question for a request. `is_full`: show its whole text,
    instead of the rows that fit the screen.

    `can_widen`: "always" can allow more than it says.
    """
    columns = shutil.get_terminal_size().columns
    request_text = describe_request(
        request, requester, columns, MAX_FULL_ROWS if is_full else _count_text_rows()
    )
    colour = has_colour(sys.stderr)
    title = paint(request_text.title, "yellow", colour=colour) + "\n"
    text = title + "".join(
        f"{paint(row, style, colour=colour)}\n" for style, row in request_text.rows
    )
    # The title has scrolled away above a long text.
    text += title if is_full else ""
    text += "  y  allow once\n"
    if request_text.always:
        text += format_always("  s  allow for this session: ", request_text.session, columns)
        text += format_always("  a  allow always: ", request_text.always, columns)
        text += _WIDEN_LINE if can_widen else ""
    text += f"  n  deny, and stop the {'subagent' if requester.subagent else 'turn'}\n"
    is_cut = request_text.is_cut and not is_full
    text += VIEW_ALL_LINE if is_cut else ""
    letters = [
        "y",
        *(["s", "a"] if request_text.always else []),
        *(["w"] if can_widen else []),
        "n",
        *(["v"] if is_cut else []),
    ]
    return _ShownQuestion(
        text, ", ".join(letters), has_always=bool(request_text.always), is_cut=is_cut
    )


def format_always(label: str, effect: str, columns: int) -> str:
    """Format an answer with its effect, in rows that fit `columns`;
    all but the first begin with a mark.
    """
    separator = f"\n     {WRAP_MARK.strip()} "
    return label + separator.join(wrap_line(effect, max(columns - len(label) - 1, 20))) + "\n"


def _queue_command(prompter: Prompter, line: str) -> str:
    """Queue a command that was typed in the place of an answer;
    return a note for the user, if that is not possible.
    """
    if prompter.queue_command(line):
        return ""
    return f"“{one_line(line, 40)}” is a command, not an answer. Answer first.\n"


def _count_text_rows() -> int:
    """Return the rows of a model's text that leave the rest of the question on the screen."""
    return max(shutil.get_terminal_size().lines - FRAME_ROWS, MIN_TEXT_ROWS)


def _asks_for_all(line: str) -> bool:
    """Return whether the user wants to see the whole text."""
    return line.strip().lower() in {"v", "view", "show all"}


async def ask_questions(
    prompter: Prompter, client: Client, request: QuestionRequest, begin: Callable[[], None]
) -> list[list[str]]:
    """Ask the questions one after the other; return the answers, fewer if the input ends.

    `begin`: called before each question.
    """
    asker = (await find_requester(client, request)).subagent or "model"
    answers: list[list[str]] = []
    for question in request.questions:
        begin()
        answer = await ask_question(prompter, question, asker)
        if answer is not None:
            answers.append(answer)
    return answers


async def ask_question(prompter: Prompter, question: QuestionInfo, asker: str) -> list[str] | None:
    """Ask a question with numbered options, until the answer is valid.

    Return the chosen options or the user's own words; None at the end of the input.
    `asker`: "model", or a subagent.
    """
    allows_several, allows_own_words = bool(question.multiple), question.custom is not False
    labels = [option.label for option in question.options]
    prompt = "Your answer: "
    if labels:
        prompt = "Numbers (such as 1 3)" if allows_several else "A number"
        prompt += ", or your own words: " if allows_own_words else ": "
    text = _format_question(question, asker, _count_text_rows())
    problem = ""
    while True:
        line = await prompter.ask(f"{text}{problem}{prompt}")
        if line is None:
            return None
        if is_command(line):
            problem = _queue_command(prompter, line)
            continue
        if _asks_for_all(line) and text.endswith(VIEW_ALL_LINE):
            text, problem = _format_question(question, asker, MAX_FULL_ROWS), ""
            continue
        answer = parse_choice(
            line, labels, allows_several=allows_several, allows_own_words=allows_own_words
        )
        if answer.labels:
            return answer.labels
        problem = f"{answer.problem}\n" if answer.problem else ""


def _quote_document(text: str, columns: int, max_rows: int) -> list[str]:
    """Quote a text of Markdown, rendered where the terminal has colours, in at most
    `max_rows` lines: of a longer one the beginning and the end.
    """
    if not has_colour(sys.stderr):
        return quote_text(text, columns, max_rows)
    room = columns - len(QUOTE_MARK) - 1
    markdown = Markdown(styled=True, columns=room)
    rendered = markdown.feed(escape_answer_controls(text).rstrip("\n") + "\n") + markdown.end()
    rows: list[str] = []
    for line in rendered.rstrip("\n").split("\n"):
        is_long = len(re.sub(SGR_PATTERN, "", line)) > room
        first, *others = wrap_painted(line, room) if is_long else [line]
        rows += [QUOTE_MARK + first, *(WRAP_MARK + each for each in others)]
    if (omitted := len(rows) - max_rows) <= 0:
        return rows
    head = max_rows * 2 // 3
    return [*rows[:head], f"{CUT_MARK}{omitted:,} more lines", *rows[head + omitted :]]


def _format_question(question: QuestionInfo, asker: str, max_rows: int) -> str:
    columns = shutil.get_terminal_size().columns
    rows = quote_text(question.question, columns, max_rows)
    if question.document is not None:
        rows += ["", *_quote_document(question.document.text, columns, max_rows)]
    output = f"The {asker} asks:\n" + "\n".join(rows) + "\n"
    for number, option in enumerate(question.options, 1):
        text = one_line(
            f"{option.label}: {option.description}" if option.description else option.label, 400
        )
        output += f"  {number}  {text}\n"
    is_cut = max_rows < MAX_FULL_ROWS and any(row.startswith(CUT_MARK) for row in rows)
    return output + (VIEW_ALL_LINE if is_cut else "")


async def ask_trust(
    terminal: OutputStream, settings: ProjectSettings, changes: Sequence[TrustChange]
) -> bool:
    """Ask whether to trust a project whose configuration needs that,
    or has changed since it was trusted.
    """
    question = (
        f"\n{format_trust_question(settings, changes, colour=has_colour(sys.stderr))}"
        "  y  trust this directory from now on (`codeloop trust --remove` revokes it)\n"
        "  n  ignore its risky settings, and ask again next time\n"
    )
    while True:
        answer = await ask_line(terminal, f"{question}Trust it? [y/N] ")
        # Trust lets a project run programs, so an empty line and the end of the input are a no.
        meaning = (
            parse_reply(answer, always=False) if answer is not None and answer.strip() else "no"
        )
        if meaning in {"yes", "no"}:
            return meaning == "yes"
        question = f"“{one_line(answer or '', 40)}” is not an answer here. "
