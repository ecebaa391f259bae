"""Completes and stores how the calls of a step ended: results, failures,
and notes on calls that repeat.
"""

import logging

from codeloop.agent.engine import Engine
from codeloop.agent.moves import REJECTED_KEY
from codeloop.kit.text.terminal_text import one_line
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.errors import MAX_LOGGED_CHARACTERS, HookRefused
from codeloop.schema.event import make_part_updated
from codeloop.schema.ids import now_ms
from codeloop.schema.limits import STEP_MIN_BYTES, STEP_OUTPUT_BYTES
from codeloop.schema.part import (
    ADVICE_KEY,
    LOOPED_KEY,
    RULE_KEY,
    TOLD_KEY,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
    ToolTime,
)
from codeloop.schema.permission import NOBODY_MESSAGE
from codeloop.schema.wire import JSON, replace
from codeloop.tool.tool import TURN_ENDED_KEY, HasAdvice, ToolFailure, ToolResult
from codeloop.tool.toolbox import InvalidToolCall, PreparedCall

_LOOP_MESSAGE = "The same call of {tool} gave the same result {count} times, so the turn was ended."
# Tools that are called again and again while something runs: equal results are not a loop.
_POLLING_TOOLS = frozenset({"bash_output", "task_output"})

_LOG = logging.getLogger("codeloop.agent")


class CallResults:
    """Completes the results of one step's calls, and stores how they ended."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine.store
        self._output_bytes = 0
        """Of the results so far."""

    def complete(
        self, result: ToolResult, prepared_call: PreparedCall, session_id: str
    ) -> ToolResult:
        """Cut a result where it is too long, and add the notices that wait for the session
        to output and metadata.
        """
        from codeloop.tool.truncate import truncate_output

        bounds = self._engine.workspace.bounds
        scratch, keep = self._engine.workspace.scratch, prepared_call.tool.traits.keep
        # Many large outputs at once would fill the model's window.
        size = max(STEP_OUTPUT_BYTES.value, 2 * bounds.output_bytes) - self._output_bytes
        if size < bounds.output_bytes:
            result = replace(result, is_bounded=False)
        size = min(bounds.output_bytes, max(size, STEP_MIN_BYTES.value))
        result = truncate_output(result, scratch, keep, lines=bounds.output_lines, size=size)
        self._output_bytes += len(result.output.encode(errors="replace"))
        notices = self._engine.services.notices.take(session_id)
        if not notices:
            return result
        return replace(
            result,
            output=f"{result.output}\n\n{notices}",
            metadata={**result.metadata, TOLD_KEY: notices},
        )

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

    def _judge_denials(self, part: ToolPart, rule: str | None) -> str:
        """Return a note for the model if a rule has denied several calls of the turn; "": none."""
        if rule is None:
            return ""
        from codeloop.agent.calls.repeated_calls import make_denial_note

        return make_denial_note(self._store.read_context(part.session_id).entries, part, rule)

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
        note = note or self._judge_denials(part, (metadata or {}).get(RULE_KEY))
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
            rule = error.verdict.rule
            name = {RULE_KEY: f"{rule.permission} {rule.pattern}"} if rule else {}
            return {"denied": True} | name | _describe_advice(error)
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
