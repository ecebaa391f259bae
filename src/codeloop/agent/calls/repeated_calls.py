"""Detects calls that repeat earlier ones, with which weak models run in circles. Pure.

Before a call runs, only its arguments are known: `is_repeated` compares those, and the user is
asked. Afterwards `count_equal_calls` compares results, too: the result gets a note for the model,
and after too many the turn is ended.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from codeloop.schema.limits import LOOPED_CALLS, REPEATED_CALLS
from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import (
    RULE_KEY,
    CompactionPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
)
from codeloop.schema.turns import begins_turn
from codeloop.schema.wire import JSON
from codeloop.store.conversation import Entry
from codeloop.tool.tool import EDIT_TOOLS

_REPEAT_NOTE_START = "(This same call has given this same result "
REPEAT_NOTE = _REPEAT_NOTE_START + "{count} times now. Try another way, or say what stops you.)"
_DENIAL_NOTE = (
    "({count} calls of this turn were refused by this rule, however they were written. Leave what "
    "it forbids, and say in your answer what was not done.)"
)
CHANGE_NOTE = (
    "(This same change of the file was made {count} times now, and undone in between. Try another way, or say what "
    "stops you.)"
)
# How many of the latest calls count for the note to the model.
_RECENT_CALLS = 8
# How many calls are compared at most.
_MAX_COMPARED_CALLS = 24
# A turn ends once it has done nothing new in so many rounds, between two summaries each.
_IDLE_ROUNDS = 2
# Parts in which equal results differ: durations and addresses.
_VARYING_TEXT = r"\b\d+(?:\.\d+)? ?(?:[mnµ]?s|secs?|seconds?)\b|\b0x[0-9a-f]+\b"
# The first item of the key of an edit that changed something;
# the second is its diff, with the lines' numbers.
_CHANGE_KEY = "change"


class EqualCalls(NamedTuple):
    """How many calls had equal results: `recent` of the latest `_RECENT_CALLS`,
    `total` since the last progress.
    """

    recent: int
    total: int


def is_repeated(entries: Sequence[Entry], part: ToolPart) -> bool:
    """Return whether the calls right before `part` have its tool and arguments,
    so often that the user is asked.
    """
    # After a reminder or the note of a check, the same call is to be expected.
    calls = _list_calls_before(entries, part, over_notes=False)
    earlier = list(islice(calls, REPEATED_CALLS.value - 1))
    return len(earlier) == REPEATED_CALLS.value - 1 and all(
        _has_same_arguments(call, part) for call in earlier
    )


def _has_same_arguments(call: ToolPart, part: ToolPart) -> bool:
    return call.tool == part.tool and call.state.input == part.state.input


def count_equal_calls(
    entries: Sequence[Entry], part: ToolPart, output: str, metadata: JSON
) -> EqualCalls:
    """Count how often the call `part` gave this output, itself included.

    Progress is a new prompt of the user, and, unless `part` is itself an edit, an edit that was
    made only once among the compared calls: what came before it is ignored. Edits that made the
    same change are equal, however the change was written; they are counted among edits alone,
    whatever was called in between.
    """
    own_key = _make_result_key(part, output, metadata)
    is_change = own_key[0] == _CHANGE_KEY
    calls = (call for call in _list_calls_before(entries, part) if not is_change or _is_edit(call))
    # Comparing goes through the text of each output: a bound keeps long turns fast.
    before = list(islice(calls, _MAX_COMPARED_CALLS))
    edit_keys = [_make_call_key(each) for each in before if _is_edit(each)]
    recent = total = 1
    for number, call in enumerate(before, 2):
        is_other = not is_change and not edit_keys and not _has_same_arguments(call, part)
        # Making a key goes through the call's output, which a call with other arguments needs not.
        key = (call.id,) if is_other else _make_call_key(call)
        if key == own_key:
            total += 1
            if number <= _RECENT_CALLS:
                recent += 1
        elif part.tool not in EDIT_TOOLS and edit_keys.count(key) == 1:
            break
    return EqualCalls(recent, total)


def _is_edit(part: ToolPart) -> bool:
    return part.tool in EDIT_TOOLS and isinstance(part.state, ToolStateCompleted)


def make_repeat_note(recent: int, metadata: JSON) -> str:
    """Return the note for the model on a call repeated `recent` times; "": none."""
    note = CHANGE_NOTE if metadata.get("diff") else REPEAT_NOTE
    return note.format(count=recent) if recent >= REPEATED_CALLS.value else ""


def make_denial_note(entries: Sequence[Entry], part: ToolPart, rule: str) -> str:
    """Return the note on a rule that has denied the call `part` and earlier ones of the turn;
    "": they are few.
    """
    earlier = sum(
        isinstance(each.state, ToolStateError) and (each.state.metadata or {}).get(RULE_KEY) == rule
        for each in islice(_list_calls_before(entries, part), _MAX_COMPARED_CALLS)
    )
    return _DENIAL_NOTE.format(count=earlier + 1) if earlier + 1 >= REPEATED_CALLS.value else ""


def ends_turn(total: int) -> bool:
    """Return whether a call repeated `total` times ends the turn."""
    return total >= LOOPED_CALLS.value


def _list_calls_before(
    entries: Sequence[Entry], part: ToolPart, *, over_notes: bool = True
) -> Iterator[ToolPart]:
    """Yield the calls that were made before `part` since the user's last prompt, the last first.

    A summary of the conversation begins nothing new. `over_notes`: neither does what else the
    program says in the user's name, such as reminders and notes on checks.
    """
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if isinstance(entry.info, UserMessage):
            may_pass = over_notes or _is_of_summary(entries, index)
            if not may_pass or begins_turn(entry.info, entry.parts):
                return
        yield from (
            each
            for each in reversed(entry.parts)
            if isinstance(each, ToolPart) and each.id < part.id
        )


def _is_of_summary(entries: Sequence[Entry], index: int) -> bool:
    """Return whether a message of the program asks for a summary,
    or has the model go on after one.
    """
    before = entries[index - 1].info if index else None
    is_after = isinstance(before, AssistantMessage) and bool(before.summary)
    return is_after or any(isinstance(part, CompactionPart) for part in entries[index].parts)


def has_stopped_progressing(entries: Sequence[Entry]) -> bool:
    """Return whether all calls since the last but one summary of a turn had been made before it,
    with equal results.

    Then a further summary gains nothing: the model does over and over what it has forgotten.
    """
    # The calls between two summaries each, the newest first.
    rounds: list[set[str]] = [set()]
    for entry in reversed(entries):
        if begins_turn(entry.info, entry.parts):
            break
        if isinstance(entry.info, AssistantMessage) and entry.info.summary:
            rounds.append(set())
        rounds[-1] |= {
            repr(_make_call_key(part)) for part in entry.parts if isinstance(part, ToolPart)
        }
    if len(rounds) <= _IDLE_ROUNDS:
        return False
    earlier = set[str]().union(*rounds[_IDLE_ROUNDS:])
    return all(each and each <= earlier for each in rounds[:_IDLE_ROUNDS])


def _make_call_key(part: ToolPart) -> tuple[object, ...]:
    """Return the key of a stored call by its result; one without a result is equal to no other."""
    match part.state:
        case ToolStateCompleted(output=text, metadata=metadata):
            return _make_result_key(part, text, metadata)
        case ToolStateError(error=text):
            return _make_result_key(part, text, {})
        case _:
            return (part.id,)


def _make_result_key(part: ToolPart, output: str, metadata: JSON) -> tuple[object, ...]:
    """Return a key that is equal for two calls with equal arguments and results,
    and for edits of equal effect.
    """
    if part.tool in EDIT_TOOLS and (diff := metadata.get("diff")):
        return (_CHANGE_KEY, diff)
    return (
        part.tool,
        part.state.input,
        re.sub(_VARYING_TEXT, "", output.partition(_REPEAT_NOTE_START)[0]).rstrip(),
    )
