"""Reminders for turns that end too early: the model is asked to continue, or to say why it stops."""

import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from codeloop.agent.engine import Engine
from codeloop.agent.moves import Stop
from codeloop.schema.errors import APIError, APIErrorData
from codeloop.schema.event import make_message_updated, make_part_updated
from codeloop.schema.ids import new_id
from codeloop.schema.message import AssistantMessage, Todo, UserMessage
from codeloop.schema.part import REMINDER_KEY, CompactionPart, Part, PatchPart, TextPart, ToolPart
from codeloop.schema.turns import begins_turn
from codeloop.schema.wire import replace
from codeloop.store.conversation import Entry, make_next_prompt

if TYPE_CHECKING:
    from codeloop.agent.checks.turn_review import TurnReview

EMPTY_ANSWER_REMINDER = (
    "<system-reminder>Your answer was empty. Go on with the task, or say what you did and what is left."
    "</system-reminder>"
)
ANNOUNCED_STEP_REMINDER = (
    "<system-reminder>You ended with a step that you announced, without its call. Make it, or say why you stop."
    "</system-reminder>"
)
TEXT_CALL_REMINDER = (
    "<system-reminder>Your answer holds a tool call as text, which was not run. Make it as a call, or say why you stop."
    "</system-reminder>"
)
UNFINISHED_WORK_REMINDER = "<system-reminder>You ended, but {problem}. Go on, or say why you stop.</system-reminder>"
_UNFINISHED_WORK_START = UNFINISHED_WORK_REMINDER.partition("{")[0]
UNMENTIONED_TESTS_PROBLEM = "your answer does not say that tests changed"
# The most reminders about checks in one turn.
_MAX_CHECK_REMINDERS = 3
# The length of the end of an answer in which an announcement is searched for.
_ANSWER_END_CHARS = 300
# Matches a last sentence that announces a next step ("Now I'll run the tests."). Weak models end with one.
_ANNOUNCED = (
    r"(?i)(?:^|[.!:\n]\s*)(?:(?:first|next|now|then|so)\b[, ]*)?"
    r"(?:i['\u2019]?ll|i will|i['\u2019]m going to|i am going to|let me)\s+"
    r"(?:(?:now|first|then|also|next|start by|begin by)\s+)*(?!(?:know|not|be|leave|stop|wait)\b)"
    r"[a-z][^.!?\n]*[.:!\u2026]*\s*$"
)
# Matches a last sentence that offers a next step as a question.
_OFFER = r"(?i)\b(?:would you like me to|do you want me to|shall i|should i|may i|can i)\b[^.?!\n]*\?\s*$"
# Matches the beginning of a call that a model wrote as text, well-formed or not.
_TEXT_CALL = (
    r"(?m)<tool_call>|<function=|<invoke name=|\[TOOL_CALLS\]|```tool_c|^Action Input:"
    r"|\"(?:arguments|action_input)\"\s*:"
)
# The length to which a todo or a command is cut in a reminder.
_EXCERPT_CHARS = 100


async def stop_or_remind(engine: Engine, session_id: str, stop: Stop) -> Stop | None:
    """Return how a turn ends, with what it did to tests; None: it continues, after a reminder or a prompt that came.

    Where a user is there, who saw what the turn did, only an empty answer is worth a reminder.
    """
    entries = read_turn_entries(engine, session_id)
    is_attended = engine.turn_settings.is_attended
    turn, _ = find_turn(entries)
    review = None
    if not is_attended and any(isinstance(part, ToolPart) for entry in turn for part in entry.parts):
        # An answer without calls needs none of this, and its patterns take long to compile.
        from codeloop.agent.checks.turn_review import has_unchecked_edits, review_turn

        review = await review_turn(engine, session_id, turn)
        unchecked = await has_unchecked_edits(engine, review)
        stop = replace(stop, test_changes=review.describe_changes(), has_unchecked_edits=unchecked)
        if engine.store.read_context(session_id).entries[-1].info.id != entries[-1].info.id:
            # A prompt came while the turn was reviewed: the next step answers it.
            return None
    if stop.reason != "done":
        return stop
    root = str(engine.workspace.directory)
    reminder = find_reminder(entries, engine.store.list_todos(session_id), review, root, is_attended=is_attended)
    if reminder is None:
        return _refuse_empty(engine, entries[-1]) or stop
    store_reminder(engine, session_id, reminder)
    return None


def _refuse_empty(engine: Engine, last: Entry) -> Stop | None:
    """Store an error in an answer that is empty again after its reminder, and return the stop; None: it says something.

    Nobody who waits for an answer must take this for a turn that is done.
    """
    info = last.info
    if not isinstance(info, AssistantMessage) or info.summary or info.finish != "stop" or not _is_empty(last):
        return None
    message = f"{info.provider_id}/{info.model_id} answered twice with nothing. Try again, or choose another model."
    error = APIError(data=APIErrorData(message=message, is_retryable=False))
    engine.store.append(make_message_updated(replace(info, error=error)))
    return Stop("error", message)


def _is_empty(entry: Entry) -> bool:
    """Return whether an answer has neither text nor calls."""
    return not any(isinstance(p, ToolPart) or (isinstance(p, TextPart) and p.text.strip()) for p in entry.parts)


def store_reminder(engine: Engine, session_id: str, reminder: str) -> None:
    """Store a reminder as a prompt, which the model reads in its next step."""
    message = make_next_prompt(engine.store.read_context(session_id))
    part = TextPart(
        id=new_id("prt"),
        session_id=session_id,
        message_id=message.id,
        text=reminder,
        synthetic=True,
        metadata={REMINDER_KEY: reminder},
    )
    engine.store.append(make_message_updated(message), make_part_updated(part))


def find_reminder(
    entries: Sequence[Entry], todos: Sequence[Todo], review: "TurnReview | None", root: str, *, is_attended: bool
) -> str | None:
    """Return the reminder that follows the last answer; None if nothing is unfinished, or a reminder said so already.

    `review`: of the turn; None: the turn has no calls, or a user attends it. `root`: the session's directory.
    A check that did not pass is the exception: its reminder comes again after new calls, up to `_MAX_CHECK_REMINDERS`.
    """
    last = entries[-1]
    if not isinstance(last.info, AssistantMessage) or last.info.summary or last.info.finish != "stop":
        return None
    turn, reminders = find_turn(entries)
    if _is_empty(last):
        return EMPTY_ANSWER_REMINDER if EMPTY_ANSWER_REMINDER not in reminders else None
    if is_attended:
        return None
    text = next((part.text for part in reversed(last.parts) if isinstance(part, TextPart)), "")
    has_called = review is not None
    if TEXT_CALL_REMINDER not in reminders and not has_called and re.search(_TEXT_CALL, text):
        return TEXT_CALL_REMINDER
    if ANNOUNCED_STEP_REMINDER not in reminders and (
        announces_step(text) or (not has_called and re.search(_OFFER, text[-_ANSWER_END_CHARS:]))
    ):
        return ANNOUNCED_STEP_REMINDER
    other_reminders = {EMPTY_ANSWER_REMINDER, ANNOUNCED_STEP_REMINDER, TEXT_CALL_REMINDER}
    earlier = [each for each in reminders if each not in other_reminders]
    if earlier:
        # A reminder of another kind, such as that a goal is not reached: whoever sent it decides how the turn goes on.
        has_other_kind = any(not each.startswith(_UNFINISHED_WORK_START) for each in earlier)
        if has_other_kind or len(earlier) >= _MAX_CHECK_REMINDERS or not _has_new_calls(turn):
            return None
    if review is None:
        return None
    unfinished = _list_unfinished(review, root, [] if earlier else todos, text, reminders)
    return UNFINISHED_WORK_REMINDER.format(problem="; ".join(unfinished)) if unfinished else None


def read_turn_entries(engine: Engine, session_id: str) -> Sequence[Entry]:
    """Return the entries of a session that hold those of its turn whole, also where a summary stands in the turn."""
    entries = engine.store.read_context(session_id).entries
    turn, _ = find_turn(entries)
    if any(isinstance(part, CompactionPart) for entry in turn for part in entry.parts):
        # Of what was summarised, the next request needs no more than the prompts.
        return engine.store.read_conversation(session_id).entries
    return entries


def find_turn(entries: Sequence[Entry]) -> tuple[list[Entry], list[str]]:
    """Return the entries of the turn, from the user's last prompt on, and the texts of the reminders among them.

    Reminders, summaries and other prompts of the program do not begin a turn.
    """
    turn: list[Entry] = []
    reminders: list[str] = []
    for entry in reversed(entries):
        turn.insert(0, entry)
        if isinstance(entry.info, UserMessage):
            if begins_turn(entry.info, entry.parts):
                break
            reminders += [text for part in entry.parts if (text := _find_reminder_text(part)) is not None]
    return turn, reminders


def _has_new_calls(turn: Sequence[Entry]) -> bool:
    """Return whether calls were made since the last reminder."""
    since = itertools.takewhile(lambda entry: not isinstance(entry.info, UserMessage), reversed(turn))
    return any(isinstance(part, ToolPart) for entry in since for part in entry.parts)


def _find_reminder_text(part: Part) -> str | None:
    """Return the reminder that a part holds; None: it holds none."""
    reminder = (part.metadata or {}).get(REMINDER_KEY) if isinstance(part, TextPart) else None
    return str(reminder) if reminder is not None else None


def announces_step(text: str) -> bool:
    """Return whether a text ends with a sentence that announces a next step."""
    return re.search(_ANNOUNCED, text[-_ANSWER_END_CHARS:]) is not None


def _list_unfinished(
    review: "TurnReview", root: str, todos: Sequence[Todo], answer: str, reminders: Sequence[str]
) -> list[str]:
    """Return the unfinished work of a turn, a phrase each: open todos, and why its last check does not count.

    The list is empty if `answer` admits the failure. Changed tests are mentioned only once in a turn: `reminders` are
    those that it has had.
    """
    from codeloop.agent.checks.admissions import admits_failure, names_test_changes, names_unrun_checks
    from codeloop.agent.checks.check_runs import (
        EARLIER_FAILURE_PROBLEM,
        LATE_CHANGES_PROBLEM,
        UNPROVEN_CHECK_PROBLEM,
        find_check_problem,
        find_failure,
        list_checks,
    )

    if admits_failure(answer):
        return []
    # Without the files that commands changed: a scratch file that a command removes at the end is worth no reminder.
    parts = [part for part in review.parts if not isinstance(part, PatchPart)]
    wrote_todos = any(isinstance(part, ToolPart) and part.tool == "todowrite" for part in parts)
    open_todos = [todo.content for todo in todos if todo.status in {"pending", "in_progress"}] if wrote_todos else []
    checks = list_checks(parts, root)
    unfinished: list[str] = []
    if open_todos:
        others = f" and {len(open_todos) - 1} more" if len(open_todos) > 1 else ""
        unfinished.append(f"a todo is open ({open_todos[0][:_EXCERPT_CHARS]}{others})")
    problem = find_check_problem(checks, root)
    if checks and not checks[-1].after_last_edit:
        unfinished.append(f"{LATE_CHANGES_PROBLEM} ({checks[-1].command[:_EXCERPT_CHARS]})")
    # An honest answer may say that some tests passed after the failure, and that the others were not run.
    elif problem is not None and not (problem.reason == EARLIER_FAILURE_PROBLEM and names_unrun_checks(answer)):
        advice = ""
        if problem.reason == UNPROVEN_CHECK_PROBLEM:
            advice = ": run it so that its exit code counts"
        else:
            failure = checks[-1] if checks[-1].failed else find_failure(checks, root)
            if failure is not None and failure.error:
                advice = f", whose last error is: {failure.error}"
        unfinished.append(f"{problem.reason} ({problem.command[:_EXCERPT_CHARS]}){advice}")
    changes = "; ".join(str(change) for change in review.test_changes if change.needs_reason)
    if changes and not names_test_changes(answer) and not any(UNMENTIONED_TESTS_PROBLEM in each for each in reminders):
        unfinished.append(f"{UNMENTIONED_TESTS_PROBLEM} ({changes[: 2 * _EXCERPT_CHARS]})")
    return unfinished
