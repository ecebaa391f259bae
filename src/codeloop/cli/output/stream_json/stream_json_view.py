"""`StreamJsonView`: the view for `--output-format stream-json`,
the JSON Lines that the SDK of Claude Code reads.

`docs/cli.md` describes the lines.
"""

from typing import Any
from uuid import uuid4

from codeloop.cli.output.finished_parts import FinishedPart, FinishedParts
from codeloop.cli.output.result import Outcome
from codeloop.cli.output.stream_json.anthropic_message import make_message, make_usage
from codeloop.cli.output.stream_json.partial_messages import PartialMessages
from codeloop.cli.output.streams import OutputStream
from codeloop.kit.text.terminal_text import escape_json_controls
from codeloop.schema.event import Event, MessageUpdated, PartUpdated, get_session_id
from codeloop.schema.ids import now_ms
from codeloop.schema.live_events import Retry, StatusChanged
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import (
    CompactionPart,
    Part,
    ReasoningPart,
    StepFinishPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
    ToolStatePending,
)
from codeloop.schema.wire import JSON, encode_json, replace


class StreamJsonView:
    """Writes each text, reasoning, tool call and tool result as a line,
    and a `result` line at the end of each turn.

    `is_result_only`: write only the `result` lines, for `--output-format json`. `shows_deltas`:
    write deltas, too, for `--include-partial-messages`.
    """

    def __init__(
        self,
        answer: OutputStream,
        progress: OutputStream,
        session_id: str,
        *,
        is_result_only: bool = False,
        shows_deltas: bool = False,
    ) -> None:
        self.session_id = session_id
        self.is_live = False
        self.calls: dict[str, tuple[str, JSON]] = {}
        """The tool and the arguments of each call, by the call's id."""
        self._calls_shown: set[str] = set()
        self._answer = answer
        self._progress = progress
        self._is_result_only = is_result_only
        self._partial_messages = PartialMessages() if shows_deltas else None
        self._finished_parts = FinishedParts()
        self._usage = _TurnUsage()
        # By the id of a subagent's session, the id of the call that started the subagent.
        self._parent_calls: dict[str, str] = {}

    def show(self, event: Event) -> None:
        """Show one event of the session."""
        self._show(event, None)

    def show_subagent(self, event: Event, title: str) -> None:
        """Show one event of a subagent's session;
        its lines name the call that started the subagent.
        """
        # The line of the call that started the subagent holds the title among its arguments.
        del title
        self._show(event, self._parent_calls.get(get_session_id(event) or ""))

    def tick(self) -> None:
        """Do nothing: there is no animation to redraw."""

    def note(self, text: str) -> None:
        """Write a note to stderr, since stdout has only JSON."""
        self._progress.write(text + "\n")

    def write(self, kind: str, **fields: Any) -> None:
        """Write a line of this type (`kind`), with the session's id and a new `uuid`."""
        self.write_line(
            {"type": kind, **fields, "session_id": self.session_id, "uuid": str(uuid4())}
        )

    def write_line(self, line: JSON) -> None:
        """Write an object as one line of JSON."""
        if not self._is_result_only or line["type"] == "result":
            self._answer.write(escape_json_controls(encode_json(line).decode()) + "\n")

    def finish(self, outcome: Outcome) -> None:
        """Write the `result` of a turn, and start counting anew for the next turn."""
        # No retry can discard the text of a turn that has ended.
        self._show_parts(self._finished_parts.release(), None)
        self.session_id = outcome.session_id or self.session_id
        is_error = outcome.exit_code != 0
        self.write(
            "result",
            subtype=_choose_subtype(outcome),
            is_error=is_error,
            duration_ms=outcome.duration_ms,
            duration_api_ms=self._usage.sum_model_time(),
            num_turns=outcome.steps,
            total_cost_usd=outcome.cost,
            usage=make_usage(outcome.tokens),
            modelUsage=self._usage.sum_by_model(),
            permission_denials=self._usage.denied,
            **({"errors": [outcome.message]} if is_error else {"result": outcome.text}),
            **({"structured_output": outcome.structured} if outcome.structured is not None else {}),
        )
        self._usage = _TurnUsage()

    def _show(self, event: Event, parent: str | None) -> None:
        """Show an event; `parent`: the id of the call that started the subagent,
        None for the session itself.
        """
        self._usage.handle_event(event)
        self._show_parts(self._finished_parts.handle_event(event), parent)
        match event:
            case PartUpdated(properties=p) if isinstance(p.part, ToolPart):
                self._show_call(p.part, parent)
            case PartUpdated(properties=p) if isinstance(p.part, CompactionPart):
                trigger = "auto" if p.part.auto else "manual"
                token_count = max(
                    (info.tokens.all for info in self._usage.messages.values()), default=0
                )
                metadata = {"trigger": trigger, "pre_tokens": token_count}
                self.write("system", subtype="compact_boundary", compact_metadata=metadata)
            case StatusChanged(properties=p) if isinstance(p.status, Retry):
                wait = max(p.status.next - now_ms(), 0)
                self.write(
                    "system",
                    subtype="api_retry",
                    attempt=p.status.attempt,
                    retry_delay_ms=wait,
                    error=p.status.message,
                )
            case _:
                pass
        if self._partial_messages is not None:
            for stream_event in self._partial_messages.handle_event(event):
                self.write("stream_event", event=stream_event, parent_tool_use_id=parent)

    def _show_parts(self, parts: list[FinishedPart], parent: str | None) -> None:
        """Show texts and reasoning that are complete. `parent`: the call that started the subagent,
        None for none.
        """
        for _, part, time in parts:
            match part:
                case TextPart(text=text) if text:
                    self._show_block(part, {"type": "text", "text": text}, parent, time)
                case ReasoningPart(text=text) if text:
                    signature = str((part.metadata or {}).get("signature") or "")
                    self._show_block(
                        part,
                        {"type": "thinking", "thinking": text, "signature": signature},
                        parent,
                        time,
                    )
                case _:
                    pass

    def _show_call(self, part: ToolPart, parent: str | None) -> None:
        """Show a call when its arguments are complete, and its result when there is one."""
        state = part.state
        if isinstance(state, ToolStatePending):
            return
        if part.id not in self._calls_shown:
            self._calls_shown.add(part.id)
            # The text before a call is final, and has to come before the call's line.
            self._show_parts(self._finished_parts.release(part.message_id), parent)
            self.calls[part.call_id] = (part.tool, state.input)
            block: JSON = {
                "type": "tool_use",
                "id": part.call_id,
                "name": part.tool,
                "input": state.input,
            }
            self._show_block(part, block, parent, state.time.start)
        if isinstance(child := (state.metadata or {}).get("sessionId"), str):
            self._parent_calls[child] = part.call_id
        if not isinstance(state, ToolStateCompleted | ToolStateError):
            return
        is_error = isinstance(state, ToolStateError)
        if is_error and (state.metadata or {}).get("denied"):
            denied = {
                "tool_name": part.tool,
                "tool_use_id": part.call_id,
                "tool_input": state.input,
            }
            self._usage.denied.append(denied)
        content = state.error if is_error else state.for_user
        result = {
            "type": "tool_result",
            "tool_use_id": part.call_id,
            "content": content,
            "is_error": is_error,
        }
        self.write("user", message={"role": "user", "content": [result]}, parent_tool_use_id=parent)

    def _show_block(self, part: Part, block: JSON, parent: str | None, time: int) -> None:
        info = self._usage.messages.get(part.message_id)
        self._usage.note_answer(part.message_id, time)
        message = make_message(part.message_id, info, [block])
        self.write("assistant", message=message, parent_tool_use_id=parent)


def _choose_subtype(outcome: Outcome) -> str:
    """Return the `subtype` of the `result` of a turn."""
    # The format has a subtype for the limit of steps, and one for that of cost;
    # only the message tells them apart.
    if outcome.reason == "limit":
        return "error_max_turns" if " step" in outcome.message else "error_max_budget_usd"
    # A turn that is done can still have failed, for example because a request was denied.
    is_success = outcome.reason in {"done", "idle"} and outcome.exit_code == 0
    return "success" if is_success else "error_during_execution"


# The fields of a model's usage in `modelUsage`.
_USAGE_FIELDS = (
    "inputTokens",
    "outputTokens",
    "cacheReadInputTokens",
    "cacheCreationInputTokens",
    "costUSD",
)


class _TurnUsage:
    """Sums of one turn: tokens, cost and time of its messages,
    and the calls that were denied permission.
    """

    def __init__(self) -> None:
        self.messages: dict[str, AssistantMessage] = {}
        """The messages of the turn, subagents' included, by id."""
        self.denied: list[JSON] = []
        """The denied calls, in the form of `permission_denials`."""
        # When the model sent the last part of a message (ms since the epoch), by the message's id.
        self._answer_times: dict[str, int] = {}

    def note_answer(self, message_id: str, time: int) -> None:
        """Note that the model sent a part of a message at this time (ms since the epoch)."""
        self._answer_times[message_id] = max(time, self._answer_times.get(message_id, 0))

    def handle_event(self, event: Event) -> None:
        """Count the messages and tokens of an event."""
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                self.messages[p.info.id] = p.info
            # The message with its sums is only stored after its last text was shown,
            # which names the usage.
            case PartUpdated(properties=p) if isinstance(p.part, StepFinishPart):
                if (info := self.messages.get(p.part.message_id)) is not None:
                    self.messages[info.id] = replace(info, tokens=p.part.tokens)
            case _:
                pass

    def sum_model_time(self) -> int:
        """Return how long the model took for its answers, in ms, without the time of tool calls."""
        total = 0
        for message_id, time in self._answer_times.items():
            if (info := self.messages.get(message_id)) is not None:
                total += max(time - info.time.created, 0)
        return total

    def sum_by_model(self) -> JSON:
        """Return the usage of each model, by `PROVIDER/MODEL`."""
        sums: JSON = {}
        for info in self.messages.values():
            tokens, model = info.all_tokens, f"{info.provider_id}/{info.model_id}"
            row = sums.setdefault(model, dict.fromkeys(_USAGE_FIELDS, 0))
            amounts = (
                tokens.input,
                tokens.output,
                tokens.cache.read,
                tokens.cache.write,
                info.cost,
            )
            for name, amount in zip(_USAGE_FIELDS, amounts, strict=True):
                # Sums of floats have digits such as those of 0.1 + 0.2.
                row[name] = round(row[name] + amount, 10)
        return sums
