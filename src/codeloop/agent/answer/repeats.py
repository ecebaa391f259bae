"""Calls that repeat an earlier result: the model gets a note, and a turn that keeps doing so is ended. Pure."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from codeloop.schema.limits import LOOPED_CALLS, REPEATED_CALLS
from codeloop.schema.message import UserMessage
from codeloop.schema.part import ToolPart, ToolStateCompleted, ToolStateError
from codeloop.store.conversation import Entry

NOTE = "(This same call has given this same result {count} times now. Try another way, or say what stops you.)"
_MARK = "(This same call has given this same result "
_RECENT = 8
"""How many recent calls are compared for the note to the model."""
_WINDOW = 24
"""How many calls are compared at most."""
_VARYING = re.compile(r"\b\d+(?:\.\d+)? ?(?:[mnµ]?s|secs?|seconds?)\b|\b0x[0-9a-f]+\b")
"""Parts in which equal results differ: durations and addresses."""
_EDITS = frozenset({"edit", "multiedit", "write", "apply_patch"})


def count_equal(entries: Sequence[Entry], part: ToolPart, output: str) -> tuple[int, int]:
    """Return how often the call gave this output: among the last eight calls, and among all since the last progress.

    `part` counts too. A first edit or a new prompt counts as progress: earlier calls are ignored.
    """
    before = list(islice(_calls_before(entries, part), _WINDOW))
    edits = [key_of(each) for each in before if _is_edit(each)]
    recent = every = 1
    known = _key(part, output)
    for number, other in enumerate(before, 2):
        if (key := key_of(other)) == known:
            every += 1
            recent += number <= _RECENT
        elif part.tool not in _EDITS and edits.count(key) == 1:
            break
    return recent, every


def _is_edit(part: ToolPart) -> bool:
    return part.tool in _EDITS and isinstance(part.state, ToolStateCompleted)


def note_on(recent: int) -> str:
    """Return the note for the model on a call repeated `recent` times; "": none."""
    return NOTE.format(count=recent) if recent >= REPEATED_CALLS.value else ""


def ends_turn(every: int) -> bool:
    """Return whether a call repeated `every` times ends the turn."""
    return every >= LOOPED_CALLS.value


def _calls_before(entries: Sequence[Entry], part: ToolPart) -> Iterator[ToolPart]:
    """Yield the calls that were made before `part` since the last prompt, the last first."""
    for entry in reversed(entries):
        if isinstance(entry.info, UserMessage):
            return
        yield from (each for each in reversed(entry.parts) if isinstance(each, ToolPart) and each.id < part.id)


def key_of(part: ToolPart) -> tuple[object, ...]:
    """Return a key that is equal for two calls that did the same."""
    match part.state:
        case ToolStateCompleted(output=text) | ToolStateError(error=text):
            return _key(part, text)
        case _:
            return (part.id,)


def _key(part: ToolPart, output: str) -> tuple[object, ...]:
    return (part.tool, part.state.input, _VARYING.sub("", output.partition(_MARK)[0]).rstrip())
