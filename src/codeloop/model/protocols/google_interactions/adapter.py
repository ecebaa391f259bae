"""Models behind Google's Interactions API."""

from typing import Any

import msgspec

from codeloop.kit.jsonc import is_object
from codeloop.model.chat import FinishReason, ModelInfo, UsageUpdate
from codeloop.model.protocols.google_interactions.request import (
    METADATA_KEY,
    InteractionRequestEncoder,
)
from codeloop.model.quirks import INTERACTIONS_QUIRKS, Quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.http_model import HttpModel
from codeloop.model.wire.json_values import list_objects, read_count, read_text
from codeloop.model.wire.response_reader import ResponseReader
from codeloop.model.wire.tool_calls import format_arguments
from codeloop.schema.message import NO_TOKENS, CacheTokens, Tokens
from codeloop.schema.wire import bound_depth

FINISH_REASONS: dict[str, FinishReason] = {
    "completed": "stop",
    "requires_action": "tool-calls",
    "incomplete": "length",
    "budget_exceeded": "length",
    "requires_continuation": "length",
}
FAILURE_MESSAGES = {
    "failed": "the interaction failed",
    "cancelled": "the interaction was cancelled",
}


class StepDelta(msgspec.Struct, gc=False):
    """An addition to a step."""

    type: Any = ""
    text: Any = None
    arguments: Any = None
    signature: Any = None
    content: Any = None


class InteractionEvent(msgspec.Struct, gc=False):
    """One event of the stream, of any type; a whole answer has `status`, `steps` and `usage`."""

    event_type: Any = ""
    index: int = 0
    delta: StepDelta | None = None
    step: Any = None
    interaction: Any = None
    status: Any = None
    steps: Any = None
    usage: Any = None
    error: Any = None


class InteractionReader(ResponseReader):
    """Reads one answer. Blocks have the numbers of the service's steps."""

    finish_reasons = FINISH_REASONS

    def __init__(self) -> None:
        super().__init__()
        self._decode = bound_depth(msgspec.json.Decoder(InteractionEvent).decode)

    def _read_document(self, body: bytes) -> None:
        """Take an answer that did not stream: the interaction itself."""
        answer = self._decode(body)
        if answer.error is not None:
            self._set_error({"error": answer.error})
            return
        for index, step in enumerate(list_objects(answer.steps)):
            self._begin_step(index, step)
            self._blocks.end_block(index)
        self._end_answer({"status": answer.status, "usage": answer.usage})

    def _read_event(self, payload: bytes) -> None:
        event = self._decode(payload)
        if event.event_type == "step.delta" and event.delta is not None:
            self._add_delta(event.index, event.delta)
            return
        match event.event_type:
            case "step.start":
                self._begin_step(event.index, event.step)
            case "step.stop":
                self._blocks.end_block(event.index)
            case "interaction.completed":
                self._end_answer(event.interaction)
                self.is_done = self.has_ended
            case "interaction.status_update":
                if event.usage is not None:
                    self.tokens = parse_usage(event.usage)
                    self._blocks.events.append(UsageUpdate(self.tokens))
            case _:
                if event.error is not None:
                    self._set_error({"error": event.error})

    def _begin_step(self, index: int, step: Any) -> None:
        if not is_object(step):
            return
        self._blocks.flush()
        match step.get("type"):
            case "function_call":
                self._blocks.start_call(
                    index, read_text(step.get("id")), read_text(step.get("name"))
                )
                if arguments := step.get("arguments"):
                    self._blocks.add_arguments(index, format_arguments(arguments))
            case "model_output":
                self._blocks.add_text("text", index, _join_texts(step.get("content")))
            case "thought":
                self._blocks.add_text(
                    "reasoning",
                    index,
                    "".join(
                        read_text(each.get("text")) for each in list_objects(step.get("summary"))
                    ),
                )
                self._add_signature(index, read_text(step.get("signature")))
            case _:
                return

    def _add_delta(self, index: int, delta: StepDelta) -> None:
        match delta.type:
            case "text":
                self._blocks.add_text("text", index, read_text(delta.text))
            case "arguments_delta":
                self._blocks.add_arguments(index, read_text(delta.arguments))
            case "thought_summary":
                words = delta.content.get("text") if is_object(delta.content) else delta.text
                self._blocks.add_text("reasoning", index, read_text(words))
            case "thought_signature":
                self._add_signature(index, read_text(delta.signature))
            case _:
                return

    def _add_signature(self, index: int, signature: str) -> None:
        if signature:
            self._blocks.add_metadata(index, {METADATA_KEY: {"signature": signature}})

    def _end_answer(self, interaction: Any) -> None:
        if not is_object(interaction):
            return
        if interaction.get("usage") is not None:
            self.tokens = parse_usage(interaction.get("usage"))
        status = read_text(interaction.get("status"))
        if status in FAILURE_MESSAGES:
            self._set_error({"error": {"code": 500, "message": FAILURE_MESSAGES[status]}})
        elif status != "in_progress":
            self._reason, self.has_ended = status, bool(status)


def _join_texts(parts: Any) -> str:
    return "".join(read_text(each.get("text")) for each in list_objects(parts))


def parse_usage(usage: Any) -> Tokens:
    """Return the counts of an interaction's `usage`: its input includes cached tokens,
    its output no thoughts.
    """
    if not is_object(usage):
        return NO_TOKENS
    input_tokens = read_count(usage, "total_input_tokens") + read_count(
        usage, "total_tool_use_tokens"
    )
    cache_read, thoughts = (
        read_count(usage, "total_cached_tokens"),
        read_count(usage, "total_thought_tokens"),
    )
    output = read_count(usage, "total_output_tokens") + thoughts
    return Tokens(
        input=max(input_tokens - cache_read, 0),
        output=output,
        reasoning=thoughts,
        cache=CacheTokens(read=cache_read, write=0),
        total=read_count(usage, "total_tokens") or input_tokens + output,
    )


API_REVISION = "2026-05-20"
"""The dated version of the API whose requests and events are implemented here."""


class GoogleInteractions(HttpModel):
    """A model at an endpoint; `/interactions` is added to the base URL."""

    encoder_type = InteractionRequestEncoder
    reader_type = InteractionReader

    def __init__(
        self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = INTERACTIONS_QUIRKS
    ) -> None:
        key_headers = {"x-goog-api-key": endpoint.key} if endpoint.key else {}
        super().__init__(
            info, endpoint, quirks, "/interactions", {"api-revision": API_REVISION, **key_headers}
        )
