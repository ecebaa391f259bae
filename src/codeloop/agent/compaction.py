"""Compacts a conversation: first requests omit old tool outputs,
then a summary replaces the older messages.

Nothing is deleted: the store keeps every message;
only requests show a marker or the summary instead.
"""

import re
from functools import partial
from itertools import takewhile

from codeloop.agent.answer.answer_lifecycle import InterruptionGuard, make_answer, store_finish
from codeloop.agent.answer.live_status import show_status
from codeloop.agent.answer.turn_diffs import store_diffs
from codeloop.agent.answer.usage import BYTES_PER_TOKEN, start_usage
from codeloop.agent.engine import Engine
from codeloop.agent.moves import Compact, find_required_format
from codeloop.agent.request.projection import project_conversation
from codeloop.agent.request.system_prompt import read_prompt
from codeloop.agent.request.text_request import ask_for_text
from codeloop.agent.request.window import (
    estimate_size,
    find_compaction_part,
    make_window,
    read_own_text,
)
from codeloop.kit import fault_injection
from codeloop.model.chat import (
    AssistantModelMessage,
    CallPiece,
    Finished,
    ImagePiece,
    ModelInfo,
    ModelMessage,
    ModelRequest,
    ResultPiece,
    TextPiece,
    ToolModelMessage,
    UserModelMessage,
)
from codeloop.schema.errors import ContextOverflowError, UnknownData, UnknownError
from codeloop.schema.event import StoredEvent, make_message_updated, make_part_updated
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.limits import (
    COMPACT_TAIL,
    COMPACT_THRESHOLD,
    KEPT_OUTPUTS,
    PRUNE_GAIN,
    SUMMARY_INPUT,
    SUMMARY_OUTPUT,
)
from codeloop.schema.live_events import Busy, SessionCompacted, SessionRef
from codeloop.schema.message import AssistantMessage, UserMessage, UserTime, format_model_ref
from codeloop.schema.part import CompactionPart, Span, TextPart, ToolPart, ToolStateCompleted
from codeloop.schema.turns import REPEATED_KEY
from codeloop.schema.wire import replace
from codeloop.store.conversation import Conversation, Entry, choose_creation_time, make_next_prompt
from codeloop.tool.superseded_outputs import find_superseded

CONTINUE_PROMPT = (
    "Continue the task from where the note leaves off. If nothing is left to do, say what was done."
)
SUMMARY_PROMPT = "Write the hand-over note now."
MAX_PIECE_CHARS = 2_000
"""Characters of arguments and of a result that the summary's input keeps."""
_RESULT_HEAD_CHARS = 500


def read_request_limit(message: str) -> int | None:
    """Return how many tokens a request may have by the context size in a service's error;
    None: it names none.

    A fifth less than `COMPACT_THRESHOLD` per cent of it: the tokens counted here are estimates.
    """
    # "This model's maximum context length is 8192 tokens, however you requested 9000"
    match = re.search(r"(?:maximum|limit|context)\D{0,60}?(\d[\d,.]{3,})", message, re.IGNORECASE)
    if match is None:
        return None
    context_tokens = int(re.sub(r"\D", "", match.group(1)))
    # A fifth less than n per cent: n / 100 * 4 / 5 = n / 125.
    return context_tokens * COMPACT_THRESHOLD.value // 125


async def compact(engine: Engine, session_id: str, move: Compact) -> None:
    """Compact as `move` says. A failed summary is stored as the session's error, not raised."""
    conversation = engine.store.read_context(session_id)
    if move.request is None:
        old_parts = [] if move.overflow else list_old_outputs(conversation)
        if sum(size for size, _ in old_parts) >= PRUNE_GAIN.value * BYTES_PER_TOKEN:
            engine.store.append(*(make_part_updated(part) for _, part in old_parts))
            return
    # Before the summary is stored: after it, reads of the conversation skip the parts
    # of the steps before it.
    await store_diffs(engine, session_id)
    conversation = engine.store.read_context(session_id)
    request = move.request or _store_request(engine, conversation, move)
    answer = make_answer(engine, session_id, request)
    info = replace(answer, mode="compaction", agent="compaction", variant=None, summary=True)
    show_status(engine, session_id, Busy())
    engine.store.append(make_message_updated(info))
    model = engine.models.open(format_model_ref(request.model))
    entries = _list_entries_before(conversation, request)
    max_input_tokens = engine.turn_settings.compact_at_tokens or _find_reported_limit(conversation)
    # Usage is counted from the request, which extensions may still change here.
    with InterruptionGuard(engine, info):
        model_request = _make_summary_request(
            model.info, await engine.hooks.change_history(session_id, entries), max_input_tokens
        )
        model_request = await engine.hooks.change_summary_request(
            request, model.info, model_request, auto=move.auto
        )
    usage = start_usage(
        engine, session_id, model.info, model_request, kind="compaction", message_id=info.id
    )
    with InterruptionGuard(engine, info, usage):
        await fault_injection.pass_point_async("compaction.start")
        text, finished = await ask_for_text(model, model_request, usage)
        await fault_injection.pass_point_async("compaction.summary")
        if not text and finished.error is None:
            empty = UnknownData(
                message="The conversation is too long, and the model gave no summary of it."
            )
            finished = Finished("error", finished.tokens, UnknownError(data=empty))
        engine.store.append(make_part_updated(_make_text_part(info, text)))
        store_finish(engine, info, finished, usage)
    await fault_injection.pass_point_async("compaction.done")
    if finished.error is None:
        engine.store.publish_live(SessionCompacted(properties=SessionRef(session_id=session_id)))
        if not move.auto:
            return
        texts = await engine.hooks.list_texts_after_summary(
            request, model.info, overflow=move.overflow
        )
        if texts is not None:
            from codeloop.agent.turn_facts import describe_turn

            facts = describe_turn(engine, session_id)
            conversation = engine.store.read_context(session_id)
            texts = [*([facts] if facts else []), *texts]
            engine.store.append(
                *_make_continuation(conversation, request, texts, overflow=move.overflow)
            )


def list_old_outputs(conversation: Conversation) -> list[tuple[int, ToolPart]]:
    """Return the size in characters of each output that can be omitted, with its tool part,
    marked as compacted.

    The newest outputs are kept, up to `KEPT_OUTPUTS`.
    """
    outputs: list[tuple[int, ToolPart]] = []
    newest_size = 0
    for entry in reversed(make_window(conversation.entries).select(conversation.entries)):
        for part in reversed(entry.parts):
            if not isinstance(part, ToolPart) or not isinstance(part.state, ToolStateCompleted):
                continue
            newest_size += len(part.state.output)
            if (
                newest_size > KEPT_OUTPUTS.value * BYTES_PER_TOKEN
                and part.state.time.compacted is None
            ):
                time = replace(part.state.time, compacted=now_ms())
                outputs.append(
                    (len(part.state.output), replace(part, state=replace(part.state, time=time)))
                )
    return outputs


def _store_request(engine: Engine, conversation: Conversation, move: Compact) -> UserMessage:
    """Store the message that asks for a summary,
    and the start of the tail that is kept verbatim.
    """
    message = make_next_prompt(conversation, format=find_required_format(conversation))
    budget = COMPACT_TAIL.value * BYTES_PER_TOKEN
    if engine.turn_settings.compact_at_tokens is not None:
        # A model with a small context keeps a quarter of it, so that the summary has room.
        budget = min(budget, engine.turn_settings.compact_at_tokens * BYTES_PER_TOKEN // 4)
    part = CompactionPart(
        id=new_id("prt"),
        session_id=message.session_id,
        message_id=message.id,
        auto=move.auto,
        overflow=move.overflow,
        tail_start_id=find_tail_start(
            make_window(conversation.entries).select(conversation.entries), budget
        ),
    )
    engine.store.append(make_message_updated(message), make_part_updated(part))
    return message


def find_tail_start(entries: tuple[Entry, ...], budget: int) -> str | None:
    """Return the id of the first of the last entries that fit `budget` characters.

    None: none fits, or so many that at most one entry would be left to summarise.
    """
    start = None
    for index in range(len(entries) - 1, 0, -1):
        budget -= estimate_size(entries[index])
        if budget < 0:
            break
        start = index
    return entries[start].info.id if start is not None and start > 1 else None


def _list_entries_before(conversation: Conversation, request: UserMessage) -> tuple[Entry, ...]:
    """Return the entries to summarise: those before the message that asks for the summary."""
    return tuple(takewhile(lambda entry: entry.info.id != request.id, conversation.entries))


def _find_reported_limit(conversation: Conversation) -> int | None:
    """Return the `read_request_limit` of the last refusal of a request as too long;
    None: there is none.
    """
    for entry in reversed(conversation.entries):
        if isinstance(entry.info, AssistantMessage) and isinstance(
            entry.info.error, ContextOverflowError
        ):
            return read_request_limit(entry.info.error.data.message)
    return None


def _make_text_part(info: AssistantMessage, text: str) -> TextPart:
    now = now_ms()
    span = Span(start=info.time.created, end=max(now, info.time.created))
    return TextPart(
        id=new_id("prt"), session_id=info.session_id, message_id=info.id, text=text, time=span
    )


def _make_summary_request(
    info: ModelInfo, entries: tuple[Entry, ...], max_input_tokens: int | None
) -> ModelRequest:
    """Return the request for the summary, which prompts call a hand-over note,
    of the entries that fit.
    """
    return ModelRequest(
        system=read_prompt("compaction").strip(),
        messages=(
            *shorten_to_fit(entries, info, max_input_tokens),
            UserModelMessage((TextPiece(SUMMARY_PROMPT),)),
        ),
        max_tokens=min(SUMMARY_OUTPUT.value, info.limits.output or SUMMARY_OUTPUT.value),
    )


def shorten_to_fit(
    entries: tuple[Entry, ...], info: ModelInfo, max_input_tokens: int | None
) -> tuple[ModelMessage, ...]:
    """Return the messages to summarise: calls and results as text, long ones cut,
    oldest dropped until the rest fits.

    `max_input_tokens` None: `SUMMARY_INPUT` tokens fit. The newest entry is kept in any case.
    """
    visible = make_window(entries)
    groups: list[list[UserModelMessage | AssistantModelMessage]] = [list(visible.head)]
    notes = find_superseded(visible.select(entries))
    groups += [
        [_replace_calls(message) for message in project_conversation([entry], info, notes)]
        for entry in visible.select(entries)
    ]
    budget = (max_input_tokens or SUMMARY_INPUT.value) * BYTES_PER_TOKEN
    newest_groups: list[list[UserModelMessage | AssistantModelMessage]] = []
    for group in reversed(groups):
        budget -= sum(
            len(piece.text)
            for message in group
            for piece in message.content
            if isinstance(piece, TextPiece)
        )
        if budget < 0 and newest_groups:
            break
        newest_groups.append(list(group))
    return tuple(message for group in reversed(newest_groups) for message in group)


def _replace_calls(message: ModelMessage) -> UserModelMessage | AssistantModelMessage:
    """Return a message without calls, so that a request without tools may hold it."""
    match message:
        case ToolModelMessage(content=content):
            return UserModelMessage(tuple(TextPiece(_format_result(piece)) for piece in content))
        case AssistantModelMessage(content=content, origin=origin):
            text_pieces = [piece for piece in content if isinstance(piece, TextPiece)]
            calls = [
                TextPiece(f"[called {piece.name} {piece.arguments[:MAX_PIECE_CHARS]}]")
                for piece in content
                if isinstance(piece, CallPiece)
            ]
            return AssistantModelMessage((*text_pieces, *calls), origin)
        case UserModelMessage(content=content):
            return UserModelMessage(
                tuple(
                    piece if isinstance(piece, TextPiece) else _name_file(piece)
                    for piece in content
                )
            )


def _name_file(piece: ImagePiece) -> TextPiece:
    return TextPiece(f"[{piece.filename or piece.mime}]")


def _format_result(piece: ResultPiece) -> str:
    output = piece.output
    if len(output) > MAX_PIECE_CHARS:
        # What tests and builds found, and the exit code, stand at the end.
        tail = MAX_PIECE_CHARS - _RESULT_HEAD_CHARS
        output = f"{output[:_RESULT_HEAD_CHARS]} [...] {output[-tail:]}"
    return f"[result of {piece.name}]\n{output}"


def _make_continuation(
    conversation: Conversation, request: UserMessage, notes: list[str], *, overflow: bool
) -> list[StoredEvent]:
    """Return the events that store a message to continue the turn.

    After an overflow it repeats the user's prompt, unless the tail holds it.
    `notes`: additional text for the model.
    """
    message = replace(
        request,
        id=new_id("msg"),
        time=UserTime(created=choose_creation_time(conversation, now_ms())),
    )
    visible_ids = {
        entry.info.id for entry in make_window(conversation.entries).select(conversation.entries)
    }
    prompts = [
        entry
        for entry in conversation.entries
        if isinstance(entry.info, UserMessage)
        and read_own_text(entry)
        and not find_compaction_part(entry)
    ]
    make_text = partial(TextPart, session_id=message.session_id, message_id=message.id)
    if overflow and prompts and prompts[-1].info.id not in visible_ids:
        # The refused request was about this prompt, which is not in the tail: it is
        # repeated as the user's own.
        repeated_text = read_own_text(prompts[-1])
        parts = [
            make_text(
                id=new_id("prt"), text=repeated_text, metadata={REPEATED_KEY: prompts[-1].info.id}
            )
        ]
    else:
        parts = [make_text(id=new_id("prt"), text=CONTINUE_PROMPT, synthetic=True)]
    parts += [make_text(id=new_id("prt"), text=note, synthetic=True) for note in notes]
    return [make_message_updated(message), *map(make_part_updated, parts)]
