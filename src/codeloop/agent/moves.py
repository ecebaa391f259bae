"""Decides the next move of the loop (ask the model, recover, compact, delegate, fall back,
stop) from what is stored.

Pure: a process that is killed at any point loses nothing,
since the next one decides from the same conversation.
"""

from itertools import takewhile
from typing import Literal

from msgspec import Struct

from codeloop.agent.engine import TurnSettings
from codeloop.agent.request.window import find_compaction_part
from codeloop.schema.errors import (
    APIError,
    ContextOverflowError,
    MessageAbortedError,
    get_error_message,
)
from codeloop.schema.message import (
    AssistantMessage,
    UserMessage,
    describe_relocation,
    format_model_ref,
)
from codeloop.schema.part import (
    LOOPED_KEY,
    Part,
    SubtaskPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
)
from codeloop.schema.turn_facts import TurnFacts
from codeloop.schema.wire import JSON
from codeloop.store.conversation import Conversation, Entry, is_final
from codeloop.tool.tool import TURN_ENDED_KEY

StopReason = Literal[
    "done",
    "idle",
    "error",
    "length",
    "filtered",
    "rejected",
    "loop",
    "limit",
    "aborted",
    "not_done",
    "moved",
    "question",
]
"""Why a turn ended.

- done: the model had nothing more to do; idle: there was no prompt.
- error: a request, or codeloop itself, failed; length, filtered: the service cut the answer,
  or withheld it.
- rejected: the user refused a call, or a hook ended the turn;
  loop: a call was made again and again.
- limit: of steps, dollars, tokens or time; aborted: it was stopped from outside.
- not_done: its goal was not reached; moved: the session goes on elsewhere.
- question: its answer asks the user, and nobody is there.
"""
REJECTED_KEY = "rejected"
"""Metadata key of a tool part: the user refused the call without a message,
or a hook ended the turn with it.
"""
_CIRCLE_MESSAGE = (
    "After two summaries of the conversation the model only repeated earlier calls, with the same results. "
    "Say what it should do otherwise, or choose a model with a larger context."
)
# Entries at the end among which the last step with token counts is searched;
# a step that failed may have none.
_RECENT_ENTRIES = 8


class AskModel(Struct, frozen=True):
    """Send a request that answers `user`. `required_format`: the format of the turn's answer;
    None: any.
    """

    user: UserMessage
    required_format: JSON | None = None


class Recover(Struct, frozen=True):
    """Close the answers and calls that a crash left open in these entries. Nothing is run again."""

    entries: tuple[Entry, ...]


class Stop(Struct, frozen=True):
    """End the turn. `message`: the reason in one line, if the turn is not simply done.

    `test_changes`: a phrase for each existing test that the turn changed. `has_unchecked_edits`:
    files changed, the project has checks, and none ran. `unended_commands`: did not end within
    their timeout, and still run. `facts`: what the turn did to the project; None: it made no calls.
    """

    reason: StopReason
    message: str = ""
    test_changes: tuple[str, ...] = ()
    has_unchecked_edits: bool = False
    unended_commands: tuple[str, ...] = ()
    facts: TurnFacts | None = None


class Compact(Struct, frozen=True):
    """Shorten the conversation. `request`: the stored message that asks for it, if there is one.

    `auto`: the user did not ask for it. `overflow`: the service refused the
    last request as too long.
    """

    auto: bool
    overflow: bool
    request: UserMessage | None = None


class Delegate(Struct, frozen=True):
    """Hand the subtasks of a prompt to their subagents."""

    user: UserMessage
    subtasks: tuple[SubtaskPart, ...]


class FallBack(Struct, frozen=True):
    """Let another model (`provider/model`) answer `user`.
    `reason`: why the requested model failed.
    """

    user: UserMessage
    model: str
    reason: str


Move = AskModel | Recover | Compact | Delegate | FallBack | Stop


def decide_next_move(conversation: Conversation, settings: TurnSettings) -> Move:
    """Decide the next move from the end of a conversation."""
    entries = conversation.entries
    open_answers = _find_open_answers(entries)
    # First, since the decisions below read how the last answer ended.
    if open_answers:
        return Recover(open_answers)
    user, required_format = _find_newest_prompt(conversation)
    if user is None:
        return Stop("idle")
    last = entries[-1]
    compaction_part = find_compaction_part(last)
    if compaction_part is not None and isinstance(last.info, UserMessage):
        return Compact(compaction_part.auto, bool(compaction_part.overflow), last.info)
    if isinstance(last.info, AssistantMessage):
        if (
            isinstance(last.info.error, ContextOverflowError)
            and settings.can_compact
            and _has_progress(entries)
        ):
            stop = _check_limits(conversation, settings) or _find_circle(entries)
            return stop or Compact(auto=True, overflow=True)
        stop = (
            None if _is_replaced(last.info, user, settings) else _find_stop(last.info, last.parts)
        )
        if stop is not None:
            return _find_fallback(last.info, user, settings) or stop
    if relocation_note := describe_relocation(conversation.session):
        return Stop("moved", relocation_note)
    limit = _check_limits(conversation, settings)
    if limit is not None:
        return limit
    # All prompts since the last answer: the subtasks may be in one that was sent before the newest.
    prompts = takewhile(lambda entry: isinstance(entry.info, UserMessage), reversed(entries))
    subtasks = tuple(
        part for entry in prompts for part in entry.parts if isinstance(part, SubtaskPart)
    )
    if subtasks:
        return Delegate(user, subtasks)
    if (
        settings.can_compact
        and settings.compact_at_tokens is not None
        and _is_full(entries, settings.compact_at_tokens)
        and _has_progress(entries)
    ):
        return _find_circle(entries) or Compact(auto=True, overflow=False)
    return AskModel(user, required_format)


def _find_newest_prompt(conversation: Conversation) -> tuple[UserMessage | None, JSON | None]:
    """Return the newest prompt, and the format that a prompt of the same turn asks for."""
    newest: UserMessage | None = None
    start = conversation.find_newest_prompt()
    for index in range(-1 if start is None else start, -1, -1):
        info = conversation.entries[index].info
        if isinstance(info, UserMessage):
            newest = newest or info
            if info.format is not None:
                return newest, info.format if info.format.get("type") == "json_schema" else None
        # Prompts before a final answer belong to earlier turns.
        elif is_final(info):
            break
    return newest, None


def find_required_format(conversation: Conversation) -> JSON | None:
    """Return the format that the newest prompt's turn requires of its answer; None: any."""
    _, required_format = _find_newest_prompt(conversation)
    return required_format


def _is_full(entries: tuple[Entry, ...], threshold: int) -> bool:
    """Return whether the last step used `threshold` tokens or more, less what was pruned since."""
    for index in range(len(entries) - 1, max(len(entries) - 1 - _RECENT_ENTRIES, -1), -1):
        info = entries[index].info
        if not isinstance(info, AssistantMessage):
            continue
        if info.summary:
            return False
        # A failed step has estimated tokens only, so the step before it counts.
        if info.tokens.all and not (info.error and info.tokens.estimated):
            # The usual case comes first: this runs before every step,
            # and the sum below goes through all entries.
            if info.tokens.all < threshold:
                return False
            ended_at = info.time.completed or info.time.created
            pruned = sum(
                _count_pruned_tokens(entry, since=ended_at) for entry in entries[: index + 1]
            )
            return info.tokens.all - pruned >= threshold
    return False


def _count_pruned_tokens(entry: Entry, since: int) -> int:
    """Return roughly how many tokens of an entry's outputs were omitted since a
    time (ms since the epoch).
    """
    outputs = [part.state for part in entry.parts if isinstance(part, ToolPart)]
    return sum(
        # About four characters are one token.
        len(state.output) // 4
        for state in outputs
        if isinstance(state, ToolStateCompleted) and (state.time.compacted or 0) >= since
    )


def _has_progress(entries: tuple[Entry, ...]) -> bool:
    """Return whether more than one step followed the last compaction, if there was one.

    Otherwise another compaction gains nothing.
    """
    steps = 0
    for entry in reversed(entries):
        if isinstance(entry.info, AssistantMessage):
            if entry.info.summary:
                return steps > 1
            steps += 1
    return True


def _find_circle(entries: tuple[Entry, ...]) -> Stop | None:
    """Return the stop of a turn that only repeats after each summary what it had done before;
    None: it does not.
    """
    # Imported late: most turns fit into their context.
    from codeloop.agent.calls.repeated_calls import has_stopped_progressing

    return Stop("loop", _CIRCLE_MESSAGE) if has_stopped_progressing(entries) else None


def _find_open_answers(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return the answers after the last completed one, none of which was completed."""
    open_entries: list[Entry] = []
    for entry in reversed(entries):
        if is_open(entry):
            open_entries.append(entry)
        elif isinstance(entry.info, AssistantMessage):
            break
    return tuple(reversed(open_entries))


def list_turn_steps(conversation: Conversation) -> list[AssistantMessage]:
    """Return the answers since the last final one: the steps so far of a
    turn that has not ended.
    """
    return [
        entry.info
        for entry in list_turn_entries(conversation)
        if isinstance(entry.info, AssistantMessage)
    ]


def list_turn_entries(conversation: Conversation) -> list[Entry]:
    """Return the entries stored since the last final answer."""
    entries: list[Entry] = []
    for entry in reversed(conversation.entries):
        if isinstance(entry.info, AssistantMessage) and is_final(entry.info):
            break
        entries.append(entry)
    return entries[::-1]


def is_open(entry: Entry) -> bool:
    """Return whether an answer was never completed."""
    return isinstance(entry.info, AssistantMessage) and entry.info.time.completed is None


def _find_stop(info: AssistantMessage, parts: tuple[Part, ...]) -> Stop | None:
    """Return the stop that follows from how the last answer ended; None: another step follows."""
    if info.error is not None:
        reason = "aborted" if isinstance(info.error, MessageAbortedError) else "error"
        return Stop(reason, get_error_message(info.error))
    match info.finish:
        case "tool-calls" | "cut":
            # The model gets the results of its calls, unless one of them ends the turn.
            return next(filter(None, map(_find_ending, parts)), None)
        case "length":
            return Stop("length", "The answer reached the model's output limit. Ask it to go on.")
        case "content-filter":
            return Stop("filtered", "The model's service withheld the answer.")
        case _:
            return Stop("done")


def _find_fallback(
    info: AssistantMessage, user: UserMessage, settings: TurnSettings
) -> FallBack | None:
    """Return the fallback model after a failed answer;
    None: no fallback applies, or none is left.
    """
    if not isinstance(info.error, APIError) or info.summary or not is_service_failure(info.error):
        return None
    failed_ref, requested_ref = f"{info.provider_id}/{info.model_id}", format_model_ref(user.model)
    # The prompt names another model by now, which has not answered yet.
    if failed_ref != requested_ref:
        return None
    fallbacks = list_fallbacks(failed_ref, settings)
    return FallBack(user, fallbacks[0], info.error.data.message) if fallbacks else None


def list_fallbacks(ref: str, settings: TurnSettings) -> tuple[str, ...]:
    """Return the fallback models after a given model, in order."""
    chain = settings.fallback_models
    return chain[chain.index(ref) + 1 :] if ref in chain else chain


def is_service_failure(error: APIError) -> bool:
    """Return whether another service may succeed: this one is overloaded, out of quota or credit,
    or unreachable.
    """
    return error.data.is_retryable or (error.data.metadata or {}).get("kind") == "credit"


def _is_replaced(info: AssistantMessage, user: UserMessage, settings: TurnSettings) -> bool:
    """Return whether an answer failed and a fallback model has since taken over its prompt.

    Fallbacks are only tried in the order of `settings.fallback_models`, so a turn always ends.
    """
    if not isinstance(info.error, APIError) or info.summary or info.parent_id != user.id:
        return False
    failed_ref, requested_ref = f"{info.provider_id}/{info.model_id}", format_model_ref(user.model)
    if requested_ref not in settings.fallback_models or failed_ref == requested_ref:
        return False
    if failed_ref not in settings.fallback_models:
        return True
    return settings.fallback_models.index(failed_ref) < settings.fallback_models.index(
        requested_ref
    )


def _find_ending(part: Part) -> Stop | None:
    """Return the stop that a call's result causes; None: none."""
    if not isinstance(part, ToolPart) or not isinstance(
        part.state, ToolStateError | ToolStateCompleted
    ):
        return None
    metadata = part.state.metadata or {}
    if TURN_ENDED_KEY in metadata:
        return Stop("rejected", str(metadata[TURN_ENDED_KEY]))
    if LOOPED_KEY in metadata:
        return Stop("loop", str(metadata[LOOPED_KEY]))
    is_rejected = REJECTED_KEY in metadata and isinstance(part.state, ToolStateError)
    return Stop("rejected", "A tool call was rejected.") if is_rejected else None


def _check_limits(conversation: Conversation, settings: TurnSettings) -> Stop | None:
    """Return the stop by the first limit that is reached; None: no limit is."""
    if settings.configured_budget is not None and settings.configured_budget.refusal:
        return Stop("limit", settings.configured_budget.refusal)
    # Most turns have no limit, or not yet as many entries: they need not be searched.
    if (
        settings.max_steps is not None
        and len(conversation.entries) >= settings.max_steps
        and len(list_turn_steps(conversation)) >= settings.max_steps
    ):
        noun = "step" if settings.max_steps == 1 else "steps"
        return Stop("limit", f"The limit of {settings.max_steps} {noun} is reached.")
    if not settings.is_spending_limited:
        return None
    from codeloop.agent.turn_limits import find_spending_limit

    limit = find_spending_limit(conversation.session, settings)
    return Stop("limit", limit) if limit else None
