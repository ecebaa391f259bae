"""Reminders for turns that end too early: the model is asked to continue,
or to say why it stops.
"""

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
from codeloop.tool.tool import EDIT_TOOLS

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
QUESTION_REMINDER = (
    "<system-reminder>Your answer is a question, and nobody can answer it. Take the sensible reading, say which one it "
    "is, and go on.</system-reminder>"
)
_ANSWER_REMINDERS = frozenset(
    (
        EMPTY_ANSWER_REMINDER,
        ANNOUNCED_STEP_REMINDER,
        TEXT_CALL_REMINDER,
        QUESTION_REMINDER,
    )
)
"""Those about the answer itself, not about the work."""
UNANSWERED_MESSAGE = "The answer is a question, and nobody was there to answer it. Reply with: codeloop run -c MESSAGE"
UNFINISHED_WORK_REMINDER = (
    "<system-reminder>You ended, but {problem}. Go on, or say why you stop.</system-reminder>"
)
ENDED_REMINDER = "<system-reminder>{ends}</system-reminder>"
"""Tells how commands in the background ended."""
_ENDED_START = "<system-reminder>bash_"
_UNFINISHED_WORK_START = UNFINISHED_WORK_REMINDER.partition("{")[0]
# The most reminders about checks in one turn.
_MAX_CHECK_REMINDERS = 3
# The length of the end of an answer in which an announcement is searched for.
_ANSWER_END_CHARS = 300
# A shorter answer claims nothing.
_MIN_CLAIM_CHARS = 12
# Matches a last sentence that announces a next step ("Now I'll run the tests.").
# Weak models end with one.
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


async def stop_or_remind(engine: Engine, session_id: str, stop: Stop) -> Stop | None:
    """Return how a turn ends, with what it did to tests;
    None: it continues, after a reminder or a prompt that came.

    Where a user is there, who saw what the turn did, only an empty answer is worth a reminder.
    """
    entries = read_turn_entries(engine, session_id)
    is_attended = engine.turn_settings.is_attended
    turn, _ = find_turn(entries)
    has_calls = any(isinstance(part, ToolPart) for entry in turn for part in entry.parts)
    # What a subagent asks goes to the agent that has sent it.
    has_user = engine.store.read_context(session_id).session.parent_id is None
    review = None
    if not is_attended and has_calls:
        # An answer without calls needs none of this, and its patterns take long to compile.
        from codeloop.agent.checks.turn_review import has_unchecked_edits, review_turn

        review = await review_turn(engine, session_id, turn)
        unchecked = await has_unchecked_edits(engine, review)
        stop = replace(stop, test_changes=review.describe_changes(), has_unchecked_edits=unchecked)
        if engine.store.read_context(session_id).entries[-1].info.id != entries[-1].info.id:
            # A prompt came while the turn was reviewed: the next step answers it.
            return None
    if stop.reason == "done":
        root = str(engine.workspace.directory)
        todos = engine.store.list_todos(session_id)
        reminder = find_reminder(
            entries, todos, review, root, is_attended=is_attended, has_user=has_user
        )
        if reminder is not None:
            store_reminder(engine, session_id, reminder)
            return None
        stop = _refuse_empty(engine, entries[-1]) or stop
        if (
            stop.reason == "done"
            and has_user
            and not is_attended
            and _ends_with_question(entries, turn)
        ):
            stop = replace(stop, reason="question", message=UNANSWERED_MESSAGE)
    answer = _read_answer(entries[-1])
    if not has_calls and not _claims_change(answer):
        return stop
    # Imported late: a turn without calls has no facts, unless it claims something.
    from codeloop.agent.answer.end_facts import collect_facts, store_facts

    facts = await collect_facts(
        engine, session_id, turn, entries[: len(entries) - len(turn)], answer
    )
    if not has_calls and not facts.false_claims:
        return stop
    if stop.has_unchecked_edits and facts.checks == "none":
        facts = replace(facts, checks="not run")
    store_facts(engine, turn, facts)
    return replace(stop, facts=facts)


def _read_answer(entry: Entry) -> str:
    return next((part.text for part in reversed(entry.parts) if isinstance(part, TextPart)), "")


def _claims_change(answer: str) -> bool:
    """Return whether an answer says that something was changed."""
    if len(answer) < _MIN_CLAIM_CHARS:
        return False
    # Imported late: its patterns take long to compile.
    from codeloop.agent.checks.claims import claims_change

    return claims_change(answer)


def _is_question(text: str, turn: Sequence[Entry]) -> bool:
    """Return whether an answer only asks the user how to go on,
    in a turn that has changed nothing.
    """
    if "?" not in text and "\uff1f" not in text:
        return False
    # Imported late: its patterns take long to compile.
    from codeloop.agent.checks.claims import asks_user

    has_changes = any(
        isinstance(part, PatchPart) or (isinstance(part, ToolPart) and part.tool in EDIT_TOOLS)
        for entry in turn
        for part in entry.parts
    )
    return not has_changes and asks_user(text)


def _ends_with_question(entries: Sequence[Entry], turn: Sequence[Entry]) -> bool:
    """Return whether the last answer asks the user again, after a reminder that nobody is there."""
    _, reminders = find_turn(entries)
    last = entries[-1]
    text = _read_answer(last)
    was_told = not {QUESTION_REMINDER, ANNOUNCED_STEP_REMINDER}.isdisjoint(reminders)
    has_called = any(isinstance(part, ToolPart) for entry in turn for part in entry.parts)
    is_offer = not has_called and re.search(_OFFER, text[-_ANSWER_END_CHARS:]) is not None
    return (
        was_told
        and isinstance(last.info, AssistantMessage)
        and (_is_question(text, turn) or is_offer)
    )


def _refuse_empty(engine: Engine, last: Entry) -> Stop | None:
    """Store an error in an answer that is empty again after its reminder, and return the stop;
    None: it says something.

    Nobody who waits for an answer must take this for a turn that is done.
    """
    info = last.info
    if (
        not isinstance(info, AssistantMessage)
        or info.summary
        or info.finish != "stop"
        or not _is_empty(last)
    ):
        return None
    message = f"{info.provider_id}/{info.model_id} answered twice with nothing. Try again, or choose another model."
    error = APIError(data=APIErrorData(message=message, is_retryable=False))
    engine.store.append(make_message_updated(replace(info, error=error)))
    return Stop("error", message)


def _is_empty(entry: Entry) -> bool:
    """Return whether an answer has neither text nor calls."""
    return not any(
        isinstance(p, ToolPart) or (isinstance(p, TextPart) and p.text.strip()) for p in entry.parts
    )


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
    entries: Sequence[Entry],
    todos: Sequence[Todo],
    review: "TurnReview | None",
    root: str,
    *,
    is_attended: bool,
    has_user: bool,
) -> str | None:
    """Return the reminder that follows the last answer; None if nothing is unfinished, or a
    reminder said so already.

    `review`: of the turn; None: the turn has no calls, or a user attends it.
    `root`: the session's directory.
    `has_user`: whether its prompts are a user's, not those of an agent to its subagent.

    A check that did not pass is the exception: its reminder comes again after new calls,
    up to `_MAX_CHECK_REMINDERS`.
    """
    last = entries[-1]
    if (
        not isinstance(last.info, AssistantMessage)
        or last.info.summary
        or last.info.finish != "stop"
    ):
        return None
    turn, reminders = find_turn(entries)
    if _is_empty(last):
        return EMPTY_ANSWER_REMINDER if EMPTY_ANSWER_REMINDER not in reminders else None
    if is_attended:
        return None
    text = _read_answer(last)
    text_reminder = _find_text_reminder(
        text, turn, reminders, has_called=review is not None, has_user=has_user
    )
    if text_reminder is not None:
        return text_reminder
    earlier = [
        each
        for each in reminders
        if each not in _ANSWER_REMINDERS and not each.startswith(_ENDED_START)
    ]
    if earlier:
        # A reminder of another kind, such as that a goal is not reached: whoever sent it
        # decides how the turn goes on.
        has_other_kind = any(not each.startswith(_UNFINISHED_WORK_START) for each in earlier)
        if has_other_kind or len(earlier) >= _MAX_CHECK_REMINDERS or not _has_new_calls(turn):
            return None
    parts_before = [part for entry in entries[: len(entries) - len(turn)] for part in entry.parts]
    if review is None:
        return _find_empty_claim(text, parts_before, reminders) if _claims_change(text) else None
    from codeloop.agent.checks.unfinished import OPEN_TODO_PROBLEM, list_unfinished

    was_told = any(OPEN_TODO_PROBLEM in each for each in earlier)
    unfinished = list_unfinished(
        review, parts_before, root, [] if was_told else todos, text, reminders
    )
    return UNFINISHED_WORK_REMINDER.format(problem="; ".join(unfinished)) if unfinished else None


def _find_text_reminder(
    text: str, turn: Sequence[Entry], reminders: Sequence[str], *, has_called: bool, has_user: bool
) -> str | None:
    """Return the reminder for an answer that holds a call as text, announces a step, offers one,
    or asks the user; None: it does none of that, or the turn had its reminder.
    """
    if TEXT_CALL_REMINDER not in reminders and not has_called and re.search(_TEXT_CALL, text):
        return TEXT_CALL_REMINDER
    if ANNOUNCED_STEP_REMINDER not in reminders and (
        announces_step(text) or (not has_called and re.search(_OFFER, text[-_ANSWER_END_CHARS:]))
    ):
        return ANNOUNCED_STEP_REMINDER
    if has_user and QUESTION_REMINDER not in reminders and _is_question(text, turn):
        return QUESTION_REMINDER
    return None


def _find_empty_claim(text: str, earlier: Sequence[Part], reminders: Sequence[str]) -> str | None:
    """Return the reminder for an answer without any call that says that something was changed;
    None: it had one.
    """
    from codeloop.agent.checks.unfinished import list_false_claims

    problems = [
        each
        for each in list_false_claims([], earlier, [], text)
        if not any(each in old for old in reminders)
    ]
    return UNFINISHED_WORK_REMINDER.format(problem="; ".join(problems)) if problems else None


def read_turn_entries(engine: Engine, session_id: str) -> Sequence[Entry]:
    """Return the entries of a session that hold those of its turn whole,
    also where a summary stands in the turn.
    """
    entries = engine.store.read_context(session_id).entries
    turn, _ = find_turn(entries)
    if any(isinstance(part, CompactionPart) for entry in turn for part in entry.parts):
        # Of what was summarised, the next request needs no more than the prompts.
        return engine.store.read_conversation(session_id).entries
    return entries


def find_turn(entries: Sequence[Entry]) -> tuple[list[Entry], list[str]]:
    """Return the entries of the turn, from the user's last prompt on,
    and the texts of the reminders among them.

    Reminders, summaries and other prompts of the program do not begin a turn.
    """
    turn: list[Entry] = []
    reminders: list[str] = []
    for entry in reversed(entries):
        turn.append(entry)
        if isinstance(entry.info, UserMessage):
            if begins_turn(entry.info, entry.parts):
                break
            reminders += [
                text for part in entry.parts if (text := _find_reminder_text(part)) is not None
            ]
    return turn[::-1], reminders


def _has_new_calls(turn: Sequence[Entry]) -> bool:
    """Return whether calls were made since the last reminder."""
    since = itertools.takewhile(
        lambda entry: not isinstance(entry.info, UserMessage), reversed(turn)
    )
    return any(isinstance(part, ToolPart) for entry in since for part in entry.parts)


def _find_reminder_text(part: Part) -> str | None:
    """Return the reminder that a part holds; None: it holds none."""
    reminder = (part.metadata or {}).get(REMINDER_KEY) if isinstance(part, TextPart) else None
    return str(reminder) if reminder is not None else None


def announces_step(text: str) -> bool:
    """Return whether a text ends with a sentence that announces a next step."""
    return re.search(_ANNOUNCED, text[-_ANSWER_END_CHARS:]) is not None
