"""Which calls that only read or search stand in a row,
so that one line shows them until it is opened.

Thinking between them is folded with them. A call that failed, that asks,
or that the user opened stands by itself.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import (
    TOLD_KEY,
    Part,
    ReasoningPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
)
from codeloop.tui.state.message_log import LoggedMessage, MessageLog

LOOKING_TOOLS = frozenset({"read", "grep", "glob", "list"})
"""The tools whose calls are folded."""
INTERMEDIATE_FINISHES: frozenset[str | None] = frozenset({None, "tool-calls", "cut"})
"""Finish reasons after which another step follows;
None: the answer is being written, or was cut off by an error.

`cut`: the connection broke after complete calls had arrived, whose results the next step sends.
"""
MustStandAlone = Callable[[ToolPart | ReasoningPart], bool]
"""Returns whether a part is shown by itself: the user opened it, or it waits for an answer."""
_Step = ToolPart | ReasoningPart | None


class CallFold(Struct, frozen=True):
    """Calls in a row, at least two; `message_ids`: of the messages that they,
    and thinking between them, belong to.
    """

    calls: tuple[ToolPart, ...]
    message_ids: tuple[str, ...]

    @property
    def key(self) -> str:
        """The key of the line that shows the calls."""
        return f"{self.calls[0].id}:calls"


class CallFolds:
    """The folds of a session. `by_part`: the fold of each folded call, and of thinking within it,
    by the part's id.
    """

    def __init__(self) -> None:
        self.by_part: dict[str, CallFold] = {}

    def update(
        self, log: MessageLog, changed_ids: AbstractSet[str], must_stand_alone: MustStandAlone
    ) -> set[str]:
        """Find the folds again around messages that changed;
        return the ids of the messages whose folds differ.
        """
        changed_ids = {*changed_ids, *self._list_neighbours(changed_ids - log.messages.keys())}
        ids = log.ids
        first, last = _find_range(ids, changed_ids & log.messages.keys())
        if first > last:
            return set()

        def can_join(index: int) -> bool:
            """Return whether a row of calls may go on over a message: nothing
            in it ends the row.
            """
            return None not in _list_steps(log.messages[ids[index]], must_stand_alone)

        # One message more on both sides: the row may begin or end in it.
        first, last = max(first - 1, 0), min(last + 1, len(ids) - 1)
        while first > 0 and can_join(first):
            first -= 1
        while last < len(ids) - 1 and can_join(last):
            last += 1
        found: dict[str, CallFold] = {}
        messages = [log.messages[message_id] for message_id in ids[first : last + 1]]
        for fold, part_ids in _find_folds(messages, must_stand_alone):
            found |= dict.fromkeys(part_ids, fold)
        known_ids = {part_id for message in messages for part_id in message.parts}
        different_ids: set[str] = set()
        for part_id in known_ids:
            before, after = self.by_part.pop(part_id, None), found.get(part_id)
            if before != after:
                different_ids |= {
                    message_id
                    for fold in (before, after)
                    if fold
                    for message_id in fold.message_ids
                }
        self.by_part |= found
        return different_ids

    def _list_neighbours(self, removed_ids: AbstractSet[str]) -> set[str]:
        """Return the ids of the messages that are folded with messages which were removed."""
        if not removed_ids:
            return set()
        folds = [
            fold for fold in self.by_part.values() if not removed_ids.isdisjoint(fold.message_ids)
        ]
        return {message_id for fold in folds for message_id in fold.message_ids}


def _find_range(ids: Sequence[str], changed_ids: Collection[str]) -> tuple[int, int]:
    """Return the indices of the first and the last of the changed messages;
    (1, 0): there is none.
    """
    # From the end, where messages change: a long conversation is not walked through for each.
    missing = set(changed_ids)
    first, last = 1, 0
    for index in range(len(ids) - 1, -1, -1):
        if not missing:
            break
        if ids[index] in missing:
            missing.discard(ids[index])
            first, last = index, max(last, index) if first <= last else index
    return first, last


def _find_folds(
    messages: Sequence[LoggedMessage], must_stand_alone: MustStandAlone
) -> Iterable[tuple[CallFold, list[str]]]:
    """Yield each fold with the ids of its parts."""
    row: list[Part] = []
    for message in messages:
        for step in _list_steps(message, must_stand_alone):
            if step is None:
                yield from _make_fold(row)
                row = []
            elif row or isinstance(step, ToolPart):
                row.append(step)
    yield from _make_fold(row)


def _make_fold(row: list[Part]) -> Iterable[tuple[CallFold, list[str]]]:
    """Yield the fold of a row of calls with thinking between them; none for a single call."""
    calls = tuple(part for part in row if isinstance(part, ToolPart))
    if len(calls) < 2:
        return
    # Thinking after the last call is not between calls.
    parts = row[: row.index(calls[-1]) + 1]
    yield (
        CallFold(calls, tuple(dict.fromkeys(part.message_id for part in parts))),
        [part.id for part in parts],
    )


def _list_steps(message: LoggedMessage, must_stand_alone: MustStandAlone) -> list[_Step]:
    """Return the calls and the thinking of a message that may be folded;
    None stands for what ends a row of calls.
    """
    info = message.info
    if not isinstance(info, AssistantMessage) or info.summary:
        return [None]
    steps: list[_Step] = []
    for part in message.parts.values():
        match part:
            case TextPart(text=text):
                if text.strip() and not part.ignored:
                    steps.append(None)
            case ReasoningPart(text=text):
                if text.strip():
                    steps.append(None if part.time.end is None or must_stand_alone(part) else part)
            case ToolPart():
                steps.append(part if _is_plain_look(part) and not must_stand_alone(part) else None)
            case _:
                pass
    # Below the last answer of a turn stand its facts.
    if info.error is not None or (
        info.time.completed is not None and info.finish not in INTERMEDIATE_FINISHES
    ):
        steps.append(None)
    return steps


def _is_plain_look(part: ToolPart) -> bool:
    """Return whether a call only looks at files, and nothing of its result must be seen."""
    if part.tool not in LOOKING_TOOLS:
        return False
    match part.state:
        case ToolStateError():
            return False
        case ToolStateCompleted(metadata=metadata, attachments=attachments):
            return (
                not attachments and not metadata.get(TOLD_KEY) and not metadata.get("interrupted")
            )
        case _:
            return True
