"""Reminders for turns that end too early: the model is asked to continue, or to say why it stops."""

import itertools
import re
from collections.abc import Sequence

from codeloop.agent.answer.admissions import admits_failure, names_test_changes, names_unrun_checks
from codeloop.agent.answer.checks import FAILED_BEFORE, NOT_SHOWN, TESTS_CHANGED, describe_problem, list_checks
from codeloop.agent.engine import Engine
from codeloop.schema.event import message_updated, part_updated
from codeloop.schema.ids import new_id
from codeloop.schema.message import AssistantMessage, Todo, UserMessage
from codeloop.schema.part import REMINDER, TextPart, ToolPart
from codeloop.store.conversation import Entry, next_prompt

EMPTY = (
    "<system-reminder>Your answer was empty. Go on with the task, or say what you did and what is left."
    "</system-reminder>"
)
ANNOUNCED = (
    "<system-reminder>You ended with a step that you announced, without its call. Make it, or say why you stop."
    "</system-reminder>"
)
UNFINISHED = "<system-reminder>You ended, but {what}. Go on, or say why you stop.</system-reminder>"
_UNFINISHED_START = UNFINISHED.partition("{")[0]
_REPEATS = 3
"""How often a turn is told that its last check did not pass."""
_END = 300  # characters of an answer's end that are looked at
_ANNOUNCED = re.compile(
    r"(?:^|[.!:\n]\s*)(?:(?:first|next|now|then|so)\b[, ]*)?"
    r"(?:i['\u2019]?ll|i will|i['\u2019]m going to|i am going to|let me)\s+"
    r"(?:(?:now|first|then|also|next|start by|begin by)\s+)*(?!(?:know|not|be|leave|stop|wait)\b)"
    r"[a-z][^.!?\n]*[.:!\u2026]*\s*$",
    re.IGNORECASE,
)
"""A last sentence that announces a next step which does not follow: weak models end so."""
_NAMED = 100  # characters of a todo or a command


def remind(engine: Engine, session_id: str) -> bool:
    """Remind the model to continue where its turn ended too early; return whether it was reminded."""
    view = engine.store.context_view(session_id)
    words = find_reminder(view.entries, engine.store.todos(session_id), is_attended=engine.policy.attended)
    if words is None:
        return False
    store_reminder(engine, session_id, words)
    return True


def store_reminder(engine: Engine, session_id: str, words: str) -> None:
    """Store a prompt of our own, which the model reads next."""
    message = next_prompt(engine.store.context_view(session_id))
    part = TextPart(
        id=new_id("prt"),
        session_id=session_id,
        message_id=message.id,
        text=words,
        synthetic=True,
        metadata={REMINDER: words},
    )
    engine.store.append(message_updated(message), part_updated(part))


def find_reminder(entries: Sequence[Entry], todos: Sequence[Todo], *, is_attended: bool) -> str | None:
    """Return the reminder for the model after its last answer; None: nothing is left, or it was reminded already.

    Of a check that did not pass it is reminded again where it made calls since, at most 3 times.
    """
    last = entries[-1]
    if not isinstance(last.info, AssistantMessage) or last.info.summary or last.info.finish != "stop":
        return None
    turn, reminders = _turn(entries)
    if not any(isinstance(p, ToolPart) or (isinstance(p, TextPart) and p.text.strip()) for p in last.parts):
        return EMPTY if EMPTY not in reminders else None
    if is_attended:
        return None
    text = next((part.text for part in reversed(last.parts) if isinstance(part, TextPart)), "")
    if ANNOUNCED not in reminders and announces_step(text):
        return ANNOUNCED
    others = [each for each in reminders if each not in {EMPTY, ANNOUNCED}]
    is_ours = all(each.startswith(_UNFINISHED_START) for each in others)
    if others and (not is_ours or len(others) >= _REPEATS or not _has_new_calls(turn)):
        return None
    remaining = _list_left(turn, [] if others else todos, text, reminders)
    return UNFINISHED.format(what="; ".join(remaining)) if remaining else None


def _turn(entries: Sequence[Entry]) -> tuple[list[Entry], list[str]]:
    """Return the entries since the last prompt that is no reminder, and the reminders among them."""
    turn: list[Entry] = []
    reminders: list[str] = []
    for entry in reversed(entries):
        turn.insert(0, entry)
        if isinstance(entry.info, UserMessage):
            texts = [str(words) for part in entry.parts if (words := reminder_in(part)) is not None]
            if not texts:
                break
            reminders += texts
    return turn, reminders


def _has_new_calls(turn: Sequence[Entry]) -> bool:
    """Return whether calls were made since the last reminder."""
    since = itertools.takewhile(lambda entry: not isinstance(entry.info, UserMessage), reversed(turn))
    return any(isinstance(part, ToolPart) for entry in since for part in entry.parts)


def reminder_in(part: object) -> object:
    """Return the text of a part that is a reminder; None for any other."""
    return (part.metadata or {}).get(REMINDER) if isinstance(part, TextPart) else None


def announces_step(text: str) -> bool:
    """Return whether a text ends with a sentence that announces a next step."""
    return _ANNOUNCED.search(text[-_END:]) is not None


def _list_left(turn: Sequence[Entry], todos: Sequence[Todo], answer: str, reminders: Sequence[str]) -> list[str]:
    """Return the open todos, and why the checks of a turn do not count, a phrase each; nothing where `answer` says so.

    That tests changed is said once.
    """
    if admits_failure(answer):
        return []
    parts = [part for entry in turn for part in entry.parts]
    wrote_todos = any(isinstance(part, ToolPart) and part.tool == "todowrite" for part in parts)
    is_open = [todo.content for todo in todos if todo.status in {"pending", "in_progress"}] if wrote_todos else []
    checks = list_checks(parts)
    remaining: list[str] = []
    if is_open:
        more = f" and {len(is_open) - 1} more" if len(is_open) > 1 else ""
        remaining.append(f"a todo is open ({is_open[0][:_NAMED]}{more})")
    if checks and not checks[-1].after_last_edit:
        remaining.append(f"files changed after the last check ({checks[-1].command[:_NAMED]})")
    elif (problem := describe_problem(checks)) is not None:
        what, detail = problem
        if what == TESTS_CHANGED and (names_test_changes(answer) or any(what in each for each in reminders)):
            return remaining
        if what == FAILED_BEFORE and names_unrun_checks(answer):
            return remaining  # a part of it passed, and the answer says that it is a part
        advice = ": run it so that its exit code counts" if what == NOT_SHOWN else ""
        remaining.append(f"{what} ({detail[: _NAMED * (2 if what == TESTS_CHANGED else 1)]}){advice}")
    return remaining
