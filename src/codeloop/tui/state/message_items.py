"""Derives the items that the screen shows from a message and the state of its session.
Without side effects.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from codeloop.client.formatting import compute_elapsed_ms
from codeloop.schema.message import NO_TOKENS, AssistantMessage, UserMessage
from codeloop.schema.part import TOLD_KEY, CompactionPart, ReasoningPart, TextPart, ToolPart
from codeloop.schema.turns import COMMAND_NOTE
from codeloop.tui.state.call_folds import INTERMEDIATE_FINISHES, CallFold
from codeloop.tui.state.conversation_items import (
    EndItem,
    FoldItem,
    Item,
    NoticeItem,
    PromptItem,
    ReasoningItem,
    SubagentSummary,
    SummaryItem,
    TextItem,
    ToolItem,
)
from codeloop.tui.state.message_log import LoggedMessage, MessageLog
from codeloop.tui.state.subagent_states import find_child_id

TODO_TOOL = "todowrite"
_MAX_LISTED_FILES = 12
"""Restored files of an undo that are listed by name."""


class DisplayState(Struct, frozen=True):
    """The state that the items of a message depend on, besides the message.

    `is_open`: whether the item of a key is open. `queued_ids`: the ids of prompts that wait.
    `undone_from`: the id of the first undone message, "" if none is; `undone_files`: the files that
    the undo restored, None as long as it works.
    `asking`: the ids of calls that wait for the user; `resume_times`: when the user answered, by
    the call's id (ms since the epoch). `children`: the subagents by the id of their session.
    `folds`: the folded calls by the ids of their parts. `todo_id`: the part of the call that
    wrote the list of tasks last.
    """

    is_open: Callable[[str], bool] = lambda _key: False
    queued_ids: Collection[str] = ()
    undone_from: str = ""
    undone_files: Sequence[str] | None = ()
    asking: Collection[str] = ()
    resume_times: Mapping[str, int] = MappingProxyType({})
    children: Mapping[str, SubagentSummary] = MappingProxyType({})
    folds: Mapping[str, CallFold] = MappingProxyType({})
    todo_id: str = ""


def make_items(log: MessageLog, message_id: str, state: DisplayState) -> list[Item]:
    """Return the items of a message, top to bottom;
    none if it is not loaded, or not shown (yet).
    """
    message = log.messages.get(message_id)
    if message is None:
        return []
    is_undone = bool(state.undone_from) and message_id >= state.undone_from
    if is_undone and not isinstance(message.info, UserMessage):
        return []
    match message.info:
        case UserMessage() as info:
            return _make_prompt_items(info, message, state, is_undone=is_undone)
        case AssistantMessage(summary=True) as info:
            text = "".join(
                part.text for part in message.parts.values() if isinstance(part, TextPart)
            )
            is_live = info.time.completed is None
            return [SummaryItem(info.id, text, is_live=is_live, is_open=state.is_open(info.id))]
        case AssistantMessage() as info:
            is_own = _is_own_command(log, info)
            return [
                *_make_part_items(info, message, state, is_own=is_own),
                *_make_end_items(log, info),
            ]


def _make_prompt_items(
    info: UserMessage, message: LoggedMessage, state: DisplayState, *, is_undone: bool
) -> list[Item]:
    parts = tuple(
        part
        for part in message.parts.values()
        if not (isinstance(part, TextPart) and part.synthetic)
    )
    if (
        info.id in state.queued_ids
        or not parts
        or all(isinstance(part, CompactionPart) for part in parts)
    ):
        return []
    # The notices that the model gets with a prompt (`TOLD_KEY`) are shown to the user, too.
    notice_items = [
        NoticeItem(f"{part.id}:told", part.text, "warning")
        for part in message.parts.values()
        if isinstance(part, TextPart) and part.synthetic and TOLD_KEY in (part.metadata or {})
    ]
    prompt = PromptItem(info.id, info, parts, is_undone=is_undone, is_open=state.is_open(info.id))
    if is_undone and info.id == state.undone_from:
        return [
            NoticeItem(f"{info.id}:undone", _describe_undone(state.undone_files), "warning"),
            prompt,
        ]
    return [prompt, *notice_items]


def _describe_undone(files: Sequence[str] | None) -> str:
    """Return the text above the undone messages: how to redo them,
    and the files that were restored.
    """
    if files is None:
        return "Undoing from here on. If this stays, the undo was cut off: /undo finishes it."
    lines = [
        "Undone from here on; /redo brings it back.",
        *(f"  {name}" for name in files[:_MAX_LISTED_FILES]),
    ]
    if len(files) > _MAX_LISTED_FILES:
        lines.append(f"  and {len(files) - _MAX_LISTED_FILES} more")
    return "\n".join(lines)


def _is_own_command(log: MessageLog, info: AssistantMessage) -> bool:
    """Return whether an answer is the output of a command that the user ran."""
    prompt = log.messages.get(info.parent_id)
    parts = prompt.parts.values() if prompt is not None else ()
    return any(isinstance(part, TextPart) and part.text == COMMAND_NOTE for part in parts)


def _make_part_items(
    info: AssistantMessage, message: LoggedMessage, state: DisplayState, *, is_own: bool
) -> Iterator[Item]:
    is_running = info.time.completed is None
    last_id = next(reversed(message.parts), "")
    for part in message.parts.values():
        if (fold := state.folds.get(part.id)) is not None:
            if part is fold.calls[0]:
                yield FoldItem(fold.key, fold.calls, is_open=state.is_open(fold.key))
            if not state.is_open(fold.key):
                continue
        match part:
            case TextPart(text=text) if text.strip() and not part.ignored:
                yield TextItem(part.id, part, is_live=is_running and part.id == last_id)
            case ReasoningPart(text=text) if text.strip():
                is_live = is_running and part.time.end is None
                yield ReasoningItem(part.id, part, is_live=is_live, is_open=state.is_open(part.id))
            case ToolPart():
                yield ToolItem(
                    part.id,
                    part,
                    state.children.get(find_child_id(part)),
                    is_open=state.is_open(part.id),
                    is_asking=part.call_id in state.asking,
                    resumed_at=state.resume_times.get(part.call_id, 0),
                    is_own=is_own,
                    is_outdated=part.tool == TODO_TOOL and part.id != state.todo_id,
                )
            case _:
                pass


def _make_end_items(log: MessageLog, info: AssistantMessage) -> list[Item]:
    """Return the end of a turn below its last answer, once that is complete."""
    if info.time.completed is None or (info.finish in INTERMEDIATE_FINISHES and info.error is None):
        return []
    # A turn has an answer for each request to the model.
    answers = log.list_answers(info.parent_id)
    tokens = NO_TOKENS
    for answer in answers:
        tokens = tokens.plus(answer.all_tokens)
    prompt = log.messages.get(info.parent_id)
    started_at = prompt.info.time.created if prompt is not None else info.time.created
    return [
        EndItem(
            f"{info.id}:end",
            info,
            steps=len(answers),
            tokens_in=tokens.input + tokens.cache.read + tokens.cache.write,
            cached_tokens=tokens.cache.read,
            tokens_out=tokens.output,
            cost=sum(answer.cost for answer in answers),
            ms=compute_elapsed_ms(started_at, info.time.completed),
            is_estimated=bool(tokens.estimated),
        )
    ]
