"""Stores how the calls of a step ended: results, failures, and notes on calls that repeat."""

import logging

from codeloop.agent.moves import REJECTED_KEY
from codeloop.kit.text.terminal_text import one_line
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.errors import MAX_LOGGED_CHARACTERS, HookRefused
from codeloop.schema.event import make_part_updated
from codeloop.schema.ids import now_ms
from codeloop.schema.part import (
    ADVICE_KEY,
    LOOPED_KEY,
    TOLD_KEY,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
    ToolTime,
)
from codeloop.schema.permission import NOBODY_MESSAGE
from codeloop.schema.wire import JSON, replace
from codeloop.store.store import Store
from codeloop.tool.tool import TURN_ENDED_KEY, HasAdvice, ToolFailure, ToolResult
from codeloop.tool.toolbox import InvalidToolCall

_LOOP_MESSAGE = "The same call of {tool} gave the same result {count} times, so the turn was ended."
# Tools that are called again and again while something runs: equal results are not a loop.
_POLLING_TOOLS = frozenset({"bash_output", "task_output"})

_LOG = logging.getLogger("codeloop.agent")


class CallResults:
    """Stores the ends of calls in a session's store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def _judge_repeats(self, part: ToolPart, output: str, metadata: JSON) -> tuple[str, JSON]:
        """Return a note for the model if a result repeats ("": none),
        and the metadata by which it ends the turn.
        """
        if part.tool in _POLLING_TOOLS:
            return "", {}
        from codeloop.agent.calls.repeated_calls import (
            count_equal_calls,
            ends_turn,
            make_repeat_note,
        )

        entries = self._store.read_context(part.session_id).entries
        counts = count_equal_calls(entries, part, output, metadata)
        note = make_repeat_note(counts.recent, metadata)
        if not ends_turn(counts.total):
            return note, {}
        return note, {LOOPED_KEY: _LOOP_MESSAGE.format(tool=part.tool, count=counts.total)}

    def store(self, part: ToolPart, start: int, result: ToolResult) -> None:
        """Store the result of a call that started at `start` (ms since the epoch)."""
        note, loop_metadata = self._judge_repeats(part, result.output, result.metadata)
        state = ToolStateCompleted(
            input=part.state.input,
            output=f"{result.output.rstrip()}\n\n{note}" if note else result.output,
            title=result.title,
            metadata=add_model_note(result.metadata, note) | loop_metadata,
            time=ToolTime(start=start, end=max(now_ms(), start)),
            attachments=list(result.attachments) or None,
        )
        self._store.append(make_part_updated(replace(part, state=state)))

    def store_error(
        self, part: ToolPart, start: int, error: str, metadata: JSON | None = None
    ) -> None:
        """Store the failure of a call that started at `start` (ms since the epoch), and log it."""
        time = ToolTime(start=start, end=max(now_ms(), start))
        # Without a handler, `logging` would print the line to stderr.
        if _LOG.hasHandlers():
            _LOG.warning(
                "%s: tool %s failed: %s",
                part.session_id,
                part.tool,
                one_line(error, MAX_LOGGED_CHARACTERS),
            )
        note, loop_metadata = self._judge_repeats(part, error, {})
        if note:
            before = metadata or {}
            advice = " ".join(filter(None, (before.get(ADVICE_KEY), note)))
            metadata = {**before, ADVICE_KEY: advice, **loop_metadata}
        state = ToolStateError(input=part.state.input, error=error, metadata=metadata, time=time)
        self._store.append(make_part_updated(replace(part, state=state)))


def add_model_note(metadata: JSON, note: str) -> JSON:
    """Return a result's metadata with the note that its output ends with,
    so that screens show it apart from that.
    """
    text = "\n\n".join(str(each) for each in (metadata.get(TOLD_KEY), note) if each)
    return {**metadata, TOLD_KEY: text} if note else metadata


def make_error_state(reason: str, metadata: JSON | None = None) -> ToolStateError:
    """Return the state of a call that was never run."""
    return ToolStateError(
        input={}, error=reason, metadata=metadata, time=ToolTime(start=now_ms(), end=now_ms())
    )


def describe_failure(error: Denied | HookRefused | Rejected | ToolFailure) -> JSON | None:
    """Return the metadata of a failed call: that it was refused, what the user said,
    advice for the model.
    """
    match error:
        case HookRefused(ends=True):
            return {REJECTED_KEY: True, TURN_ENDED_KEY: str(error)}
        case HookRefused():
            return {"denied": True}
        case Denied():
            return {"denied": True} | _describe_advice(error)
        case Rejected(message=None):
            return {REJECTED_KEY: True} | _describe_advice(error)
        case Rejected(message=message):
            return (
                {"denied": True}
                | ({} if message == NOBODY_MESSAGE else {"said": message})
                | _describe_advice(error)
            )
        case ToolFailure():
            return (error.metadata or {}) | _describe_advice(error) or None


def _describe_advice(error: HasAdvice) -> JSON:
    """Return the advice of an error as metadata: the model reads it, screens don't show it."""
    return {ADVICE_KEY: error.advice} if error.advice else {}


def make_refused_part(part: ToolPart, invalid: InvalidToolCall) -> ToolPart:
    """Return the part of a call that can't run: with an error;
    one that is unusable becomes a call of `invalid`.
    """
    time = ToolTime(start=now_ms(), end=now_ms())
    if not invalid.is_unusable:
        advice = _describe_advice(invalid) or None
        return replace(
            part,
            state=ToolStateError(
                input=invalid.input, error=invalid.reason, time=time, metadata=advice
            ),
        )
    payload = {"tool": part.tool, "error": invalid.reason}
    state = ToolStateCompleted(
        input=payload,
        output=invalid.reason,
        title="Invalid Tool",
        metadata={"truncated": False},
        time=time,
    )
    return replace(part, tool="invalid", state=state)
