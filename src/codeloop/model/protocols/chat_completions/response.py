"""The events of an OpenAI chat completion, streamed or whole, as ours."""

from typing import Any

import msgspec

from codeloop.model.chat import FinishReason, ModelEvent, ReasoningDelta
from codeloop.model.protocols.chat_completions.request import METADATA
from codeloop.model.wire.response import ResponseReader, count, is_json_object, items, text, tier_of
from codeloop.model.wire.tool_calls import arguments_text
from codeloop.schema.message import NO_TOKENS, CacheTokens, Tokens
from codeloop.schema.wire import JSON

REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "tool_use": "tool-calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content-filter",
    "safety": "content-filter",
    "refusal": "content-filter",
}


class CompletionMessage(msgspec.Struct, gc=False):
    """A delta, or the message of an answer that did not stream. Services disagree on types: each is looked at."""

    content: Any = None
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_text: Any = None
    reasoning_details: Any = None
    tool_calls: Any = None


class CompletionChoice(msgspec.Struct, gc=False):
    """One of the answers; only the first is asked for."""

    delta: CompletionMessage | None = None
    message: CompletionMessage | None = None
    finish_reason: Any = None
    error: Any = None


class CompletionChunk(msgspec.Struct, gc=False):
    """One event of the stream."""

    choices: list[CompletionChoice] | None = None
    usage: Any = None
    service_tier: Any = None
    error: Any = None
    message: Any = None
    detail: Any = None


class OpenAIReader(ResponseReader):
    """Reads one answer. Text, reasoning and calls that follow one another are blocks numbered from 0."""

    reasons = REASONS

    def __init__(self) -> None:
        super().__init__()
        self._decode = msgspec.json.Decoder(CompletionChunk).decode
        self._details: list[JSON] = []

    def read_document(self, body: bytes) -> list[ModelEvent]:
        """Take an answer that did not stream."""
        events = self.feed([body])
        self.has_ended = self.has_ended or bool(events)
        return events

    def finish(self) -> list[ModelEvent]:
        """Return the calls that are still open, and Finished."""
        self._blocks.flush()
        self._emit_details()
        return super().finish()

    def _take(self, payload: bytes) -> None:
        if payload == b"[DONE]":
            self.is_done = self.has_ended = True
            return
        try:
            chunk = self._decode(payload)
        except msgspec.DecodeError as error:
            self._fail({"message": f"an event is not what the protocol says: {error}"})
            return
        if chunk.choices:
            # Only one answer was asked for.
            self._choice(chunk.choices[0])
        if chunk.usage is not None:
            self.tokens = tokens_of(chunk.usage, tier_of(chunk.service_tier))
        if chunk.error is not None:
            self._fail({"error": chunk.error})
        # Some services report an error inside a 200 as a plain `message` or `detail`.
        elif not chunk.choices and chunk.usage is None and (message := chunk.message or chunk.detail):
            self._fail({"message": str(message)})

    def _choice(self, choice: CompletionChoice) -> None:
        message = choice.delta or choice.message
        if message is not None:
            reasoning_content = message.reasoning_content or message.reasoning or message.reasoning_text
            if reasoning_content or message.reasoning_details:
                self._think(reasoning_content, message.reasoning_details)
            if message.content:
                self._say(message.content)
            if message.refusal:
                self._say(message.refusal)
            if message.tool_calls:
                self._call(message.tool_calls)
        if choice.error is not None:
            self._fail({"error": choice.error})
        if choice.finish_reason:
            self._reason = str(choice.finish_reason).lower()
            if self._reason == "error":
                self._fail({"message": "the service stopped with an error and gave no reason"})
            self.has_ended = True

    def _say(self, content: Any) -> None:
        if isinstance(content, str):
            if self._blocks.kind != "text":
                self._open_block("text")
            self._blocks.pieces.append(content)
            return
        for item in items(content):
            match item:
                case {"type": "thinking", "thinking": [*parts]}:
                    self._think("".join(text(part.get("text")) for part in items(parts)), None)
                case {"text": str(words)}:
                    self._say(words)
                case _:
                    continue

    def _think(self, thought: Any, details: Any) -> None:
        if self._blocks.kind != "reasoning":
            self._open_block("reasoning")
        if isinstance(thought, str):
            self._blocks.pieces.append(thought)
        for detail in items(details):
            if not thought:
                self._blocks.pieces.append(text(detail.get("text")) or text(detail.get("summary")))
            merge_detail(self._details, detail)

    def _open_block(self, kind: str) -> None:
        self._blocks.flush()
        if self._blocks.kind == "reasoning":
            self._emit_details()
        self._blocks.kind = kind
        self._blocks.number += 1

    def _emit_details(self) -> None:
        if not self._details:
            return
        details, self._details = self._details, []
        if self._blocks.kind != "reasoning":
            self._blocks.kind = "reasoning"
            self._blocks.number += 1
        self._blocks.events.append(ReasoningDelta("", self._blocks.number, {METADATA: {"reasoning_details": details}}))

    def _call(self, pieces: Any) -> None:
        if self._blocks.kind != "call":
            self._open_block("call")
        for piece in items(pieces):
            function = piece.get("function")
            name, arguments = "", ""
            if is_json_object(function):
                name, arguments = text(function.get("name")), arguments_text(function.get("arguments"))
            self._blocks.events += self._blocks.calls.take(piece.get("index"), text(piece.get("id")), name, arguments)


def merge_detail(details: list[JSON], piece: JSON) -> None:
    """Add a streamed piece of `reasoning_details` to the entry it continues, or as a new entry."""
    last = details[-1] if details else {}
    field = {"reasoning.text": "text", "reasoning.summary": "summary"}.get(str(piece.get("type")))
    same = field and last.get("type") == piece.get("type") and last.get("index") == piece.get("index")
    # A signature ends its entry: what follows is a new one.
    if not field or not same or last.get("signature"):
        details.append(dict(piece))
        return
    joined_text = text(last.get(field)) + text(piece.get(field))
    last.update({name: value for name, value in piece.items() if value is not None})
    last[field] = joined_text


def tokens_of(usage: Any, tier: str = "") -> Tokens:
    """Return the counts of a `usage` object; what it lacks is 0. Cached tokens are taken off the input."""
    if not is_json_object(usage):
        return NO_TOKENS
    prompt, output = count(usage, "prompt_tokens"), count(usage, "completion_tokens")
    cache_read = count(usage, "prompt_tokens_details", "cached_tokens")
    # Fields of services that lack `prompt_tokens_details`, such as DeepSeek.
    cache_read = cache_read or count(usage, "prompt_cache_hit_tokens") or count(usage, "cached_tokens")
    cache_write = count(usage, "prompt_tokens_details", "cache_write_tokens")
    reasoning = count(usage, "completion_tokens_details", "reasoning_tokens")
    # Some services leave reasoning out of `completion_tokens`: their total shows it.
    if reasoning and count(usage, "total_tokens") == prompt + output + reasoning:
        output += reasoning
    fresh = max(prompt - cache_read - cache_write, 0)
    total = fresh + output + cache_read + cache_write
    cache = CacheTokens(read=cache_read, write=cache_write)
    return Tokens(input=fresh, output=output, reasoning=reasoning, cache=cache, total=total, tier=tier)
