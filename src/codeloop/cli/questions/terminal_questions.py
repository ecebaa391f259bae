"""Asks the user at a terminal: permissions, questions of the model, trust. Imported when there is something to ask."""

import shutil
import sys
from collections.abc import Callable

from codeloop.app.settings import ProjectSettings
from codeloop.cli.output.streams import OutputStream
from codeloop.cli.output.style import has_colour, paint
from codeloop.cli.questions.prompter import Prompter, ask_line
from codeloop.cli.questions.reply_parser import parse_choice, parse_reply
from codeloop.cli.questions.trust_text import format_trust_question
from codeloop.client.client import Client
from codeloop.client.permission_text import CUT_MARK, UNLIMITED_ROWS, describe_request, quote_text
from codeloop.client.requester import Requester, find_requester
from codeloop.client.slash.commands import is_command
from codeloop.kit.terminal_text import one_line
from codeloop.schema.permission import PermissionRequest, Reply
from codeloop.schema.question import QuestionInfo, QuestionRequest

VIEW_ALL_LINE = "  v  view all of it\n"
OWN_ROWS, MIN_TEXT_ROWS = 9, 6
"""Rows of a question that are our own, about; rows of a foreign text that are shown on the smallest screen."""


async def ask_permission(prompter: Prompter, client: Client, request: PermissionRequest) -> tuple[Reply, str | None]:
    """Ask for a permission and return the reply, with words for the model if it is denied with some."""
    asking = await find_requester(client, request)
    text, letters, has_always = _format_permission(request, asking, is_full=False)
    problem = ""
    while True:
        line = await prompter.ask(f"{text}{problem}{letters}, or what to do instead: ")
        if line is None:
            return "reject", None
        if (answer_first := _run_command(prompter, line)) is not None:
            problem = answer_first
            continue
        if _asks_for_all(line) and letters.endswith("v"):
            text, letters, has_always = _format_permission(request, asking, is_full=True)
            problem = ""
            continue
        match parse_reply(line, always=has_always):
            case "yes":
                return "once", None
            case "always":
                return "always", None
            case "no":
                return "reject", None
            case "words":
                return "reject", line.strip()
            case "unclear":
                problem = f"“{one_line(line, 40)}” is not an answer here.\n" if line.strip() else ""


def _format_permission(request: PermissionRequest, asking: Requester, *, is_full: bool) -> tuple[str, str, bool]:
    """Return a question, the letters that answer it, and whether `always` does. The end is always our own."""
    words = describe_request(
        request, asking, shutil.get_terminal_size().columns, UNLIMITED_ROWS if is_full else _count_text_rows()
    )
    colour = has_colour(sys.stderr)
    title = paint(words.title, "yellow", colour=colour) + "\n"
    text = title + "".join(f"{paint(row, look, colour=colour)}\n" for look, row in words.rows)
    text += title if is_full else ""
    text += "  y  allow once\n"
    if words.always:
        text += f"  a  allow always: {words.always}\n"
    text += f"  n  deny, and stop the {'subagent' if asking.subagent else 'turn'}\n"
    has_more = words.is_cut and not is_full
    text += VIEW_ALL_LINE if has_more else ""
    letters = ["y", *(["a"] if words.always else []), "n", *(["v"] if has_more else [])]
    return text, ", ".join(letters), bool(words.always)


def _run_command(prompter: Prompter, line: str) -> str | None:
    """Hand over a line that is a command and no answer; return what to say of it, None for any other line."""
    if not is_command(line):
        return None
    return (
        "" if prompter.queue_command(line) else f"“{one_line(line, 40)}” is a command, not an answer. Answer first.\n"
    )


def _count_text_rows() -> int:
    """Return how many rows of a foreign text leave the question on the screen."""
    return max(shutil.get_terminal_size().lines - OWN_ROWS, MIN_TEXT_ROWS)


def _asks_for_all(line: str) -> bool:
    return line.strip().lower() in {"v", "view", "show all"}


async def ask_questions(
    prompter: Prompter, client: Client, request: QuestionRequest, begin: Callable[[], None]
) -> list[list[str]]:
    """Ask one question after the other, each after a call of `begin`; fewer answers if the input ends."""
    who = (await find_requester(client, request)).subagent or "model"
    answers: list[list[str]] = []
    for question in request.questions:
        begin()
        answer = await ask_question(prompter, question, who)
        if answer is not None:
            answers.append(answer)
    return answers


async def ask_question(prompter: Prompter, question: QuestionInfo, who: str) -> list[str] | None:
    """Ask with numbered options and return the chosen ones, or the user's words; None at the end of the input."""
    several, free = bool(question.multiple), question.custom is not False
    labels = [option.label for option in question.options]
    how = "Your answer: "
    if labels:
        how = ("Numbers (such as 1 3)" if several else "A number") + (", or your own words: " if free else ": ")
    text = _format_question(question, who, _count_text_rows())
    problem = ""
    while True:
        line = await prompter.ask(f"{text}{problem}{how}")
        if line is None:
            return None
        if (answer_first := _run_command(prompter, line)) is not None:
            problem = answer_first
            continue
        if _asks_for_all(line) and text.endswith(VIEW_ALL_LINE):
            text, problem = _format_question(question, who, UNLIMITED_ROWS), ""
            continue
        answer = parse_choice(line, labels, several=several, free=free)
        if answer.labels:
            return answer.labels
        problem = f"{answer.problem}\n" if answer.problem else ""


def _format_question(question: QuestionInfo, who: str, most: int) -> str:
    rows = quote_text(question.question, shutil.get_terminal_size().columns, most)
    output = f"The {who} asks:\n" + "\n".join(rows) + "\n"
    for number, option in enumerate(question.options, 1):
        text = one_line(f"{option.label}: {option.description}" if option.description else option.label, 400)
        output += f"  {number}  {text}\n"
    return output + (VIEW_ALL_LINE if most < UNLIMITED_ROWS and any(row.startswith(CUT_MARK) for row in rows) else "")


async def ask_trust(terminal: OutputStream, settings: ProjectSettings) -> bool:
    """Ask whether to trust a project whose configuration needs that, or has changed since it was trusted."""
    question = (
        f"\n{format_trust_question(settings, colour=has_colour(sys.stderr))}"
        "  y  trust this directory from now on (`codeloop trust --remove` revokes it)\n"
        "  n  ignore its risky settings, and ask again next time\n"
    )
    while True:
        answer = await ask_line(terminal, f"{question}Trust it? [y/N] ")
        kind = parse_reply(answer or "", always=False) if (answer or "").strip() else "no"
        if kind in {"yes", "no"}:
            return kind == "yes"
        question = f"“{one_line(answer or '', 40)}” is not an answer here. "
