"""Derives the items that the screen shows from a message and the state of its session. Without side effects."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from codeloop.client.formatting import compute_elapsed_ms
from codeloop.schema.message import NO_TOKENS, AssistantMessage, UserMessage
from codeloop.schema.part import TOLD_KEY, CompactionPart, ReasoningPart, TextPart, ToolPart
from codeloop.tui.state.conversation_items import (
    Child,
    EndItem,
    Item,
    NoticeItem,
    PromptItem,
    ReasoningItem,
    SummaryItem,
    TextItem,
    ToolItem,
)
from codeloop.tui.state.message_log import LoggedMessage, MessageLog
from codeloop.tui.state.subagent_states import find_child_id

_MAX_LISTED_FILES = 12
"""Files that an undo restored, which are listed by name."""
INTERMEDIATE_FINISHES = {None, "tool-calls", "cut"}
"""Finish reasons after which another step follows."""


class DisplayState(Struct, frozen=True):
    """The state that the items of a message depend on, besides the message.

    `open_keys`: the keys of items that the user has opened. `queued_ids`: the ids of prompts that wait. `undone_from`:
    the id of the first undone message, "" if none is; `undone_files`: the files that the undo restored. `asking`: the
    ids of calls that wait for the user; `resume_times`: when the user answered, by the call's id (ms since the epoch).
    `children`: the subagents by the id of their session.
    """

    open_keys: Collection[str] = ()
    queued_ids: Collection[str] = ()
    undone_from: str = ""
    undone_files: Sequence[str] = ()
    asking: Collection[str] = ()
    resume_times: Mapping[str, int] = MappingProxyType({})
    children: Mapping[str, Child] = MappingProxyType({})


def make_items(log: MessageLog, message_id: str, state: DisplayState) -> list[Item]:
    """Return the items of a message, top to bottom; none if it is not loaded."""
    message = log.messages.get(message_id)
    if message is None:
        return []
    undone = bool(state.undone_from) and message_id >= state.undone_from
    match message.info:
        case UserMessage() as info:
            return _make_prompt_items(info, message, state, undone=undone)
        case AssistantMessage(summary=True) as info:
            text = "".join(part.text for part in message.parts.values() if isinstance(part, TextPart))
            is_live = info.time.completed is None
            return [] if undone else [SummaryItem(info.id, text, is_live, info.id in state.open_keys)]
        case AssistantMessage() as info:
            return [] if undone else [*_make_part_items(info, message, state), *_make_end_items(log, info)]


def _make_prompt_items(info: UserMessage, message: LoggedMessage, state: DisplayState, *, undone: bool) -> list[Item]:
    parts = tuple(part for part in message.parts.values() if not (isinstance(part, TextPart) and part.synthetic))
    if info.id in state.queued_ids or not parts or all(isinstance(part, CompactionPart) for part in parts):
        return []
    notice_items = [
        NoticeItem(f"{part.id}:told", part.text, "warning")
        for part in message.parts.values()
        if isinstance(part, TextPart) and part.synthetic and TOLD_KEY in (part.metadata or {})
    ]
    prompt = PromptItem(info.id, info, parts, is_undone=undone, is_open=info.id in state.open_keys)
    if undone and info.id == state.undone_from:
        return [NoticeItem(f"{info.id}:undone", _describe_undone(state.undone_files), "warning"), prompt]
    return [prompt, *notice_items]


def _describe_undone(files: Sequence[str]) -> str:
    """Return the text above the undone messages: how to redo them, and the files that were restored."""
    more = [f"and {len(files) - _MAX_LISTED_FILES} more"] if len(files) > _MAX_LISTED_FILES else []
    names = (f"  {name}" for name in [*files[:_MAX_LISTED_FILES], *more])
    return "\n".join(["Undone from here on; /redo brings it back.", *names])


def _make_part_items(info: AssistantMessage, message: LoggedMessage, state: DisplayState) -> Iterator[Item]:
    is_open = info.time.completed is None
    last = next(reversed(message.parts), "")
    for part in message.parts.values():
        match part:
            case TextPart(text=text) if text.strip() and not part.ignored:
                yield TextItem(part.id, part, is_live=is_open and part.id == last)
            case ReasoningPart(text=text) if text.strip():
                yield ReasoningItem(part.id, part, is_open and part.time.end is None, part.id in state.open_keys)
            case ToolPart():
                yield ToolItem(
                    part.id,
                    part,
                    state.children.get(find_child_id(part)),
                    is_open=part.id in state.open_keys,
                    is_asking=part.call_id in state.asking,
                    resumed_at=state.resume_times.get(part.call_id, 0),
                )
            case _:
                pass


def _make_end_items(log: MessageLog, info: AssistantMessage) -> list[Item]:
    """Return the end of a turn below its last answer, once that is complete."""
    if info.time.completed is None or (info.finish in INTERMEDIATE_FINISHES and info.error is None):
        return []
    answers = log.list_answers(info.parent_id)
    used = NO_TOKENS
    # A turn has an answer for each request to the model.
    for step in answers:
        used = used.plus(step.all_tokens)
    prompt = log.messages.get(info.parent_id)
    began = prompt.info.time.created if prompt is not None else info.time.created
    return [
        EndItem(
            f"{info.id}:end",
            info,
            steps=len(answers),
            tokens_in=used.input + used.cache.read + used.cache.write,
            cached_tokens=used.cache.read,
            tokens_out=used.output,
            cost=sum(step.cost for step in answers),
            ms=compute_elapsed_ms(began, info.time.completed),
            is_estimated=bool(used.estimated),
        )
    ]
