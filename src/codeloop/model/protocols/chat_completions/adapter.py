"""Models behind OpenAI's chat completions protocol: OpenAI itself, most other services,
local servers.
"""

from typing import Any, Literal

import msgspec

from codeloop.kit.jsonc import is_object
from codeloop.model.chat import FinishReason, ModelEvent, ModelInfo, ReasoningDelta
from codeloop.model.protocols.chat_completions.request import (
    METADATA_KEY,
    ChatCompletionsRequestEncoder,
)
from codeloop.model.quirks import COMPATIBLE_QUIRKS, Quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.http_model import HttpModel
from codeloop.model.wire.json_values import list_objects, read_count, read_text
from codeloop.model.wire.response_reader import ResponseReader, read_tier
from codeloop.model.wire.tool_calls import format_arguments
from codeloop.schema.message import NO_TOKENS, CacheTokens, Tokens
from codeloop.schema.wire import JSON, bound_depth, decode_json

# The reasons of OpenAI, and of services that took over those of another protocol.
FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "tool_use": "tool-calls",
    "complete": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "max_completion_tokens": "length",
    "model_length": "length",
    "error_limit": "length",
    "repetition_truncation": "length",
    "content_filter": "content-filter",
    "content_filtered": "content-filter",
    "sensitive": "content-filter",
    "error_toxic": "content-filter",
    "safety": "content-filter",
    "refusal": "content-filter",
}


_THINK_START, _THINK_END = "<think>", "</think>"


class ChatCompletionMessage(msgspec.Struct, gc=False):
    """A delta, or the message of an answer that did not stream.

    Services name the thinking `reasoning_content` (DeepSeek), `reasoning` (OpenRouter, Ollama) or
    `reasoning_text` (GitHub Copilot), and disagree on types,
    so each value is checked where it is read.
    """

    content: Any = None
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_text: Any = None
    reasoning_details: Any = None
    tool_calls: Any = None


class ChatCompletionChoice(msgspec.Struct, gc=False):
    """One of the alternative answers; only one is requested."""

    delta: ChatCompletionMessage | None = None
    message: ChatCompletionMessage | None = None
    finish_reason: Any = None
    error: Any = None


class ChatCompletionChunk(msgspec.Struct, gc=False):
    """One event of the stream."""

    choices: list[ChatCompletionChoice] | None = None
    usage: Any = None
    service_tier: Any = None
    error: Any = None
    base_resp: Any = None


class ChatCompletionsReader(ResponseReader):
    """Reads one answer. Text, reasoning and calls that follow one another are
    blocks numbered from 0.
    """

    finish_reasons = FINISH_REASONS

    def __init__(self) -> None:
        super().__init__()
        self._decode = bound_depth(msgspec.json.Decoder(ChatCompletionChunk).decode)
        self._reasoning_details: list[JSON] = []
        self._start: Literal["unread", "thinking", "thought", "read"] = "unread"
        """Whether the text has begun with `<think>`, and whether that has ended."""
        self._held_text = ""
        """The text that is not told yet, because it may be the beginning of a tag."""

    def read_document(self, body: bytes) -> list[ModelEvent]:
        """Take an answer that did not stream."""
        events = self.feed([body])
        self.has_ended = self.has_ended or bool(events)
        return events

    def finish(self) -> list[ModelEvent]:
        """Return the calls that are still open, and Finished."""
        self._release_text()
        self._blocks.flush()
        self._emit_details()
        return super().finish()

    def _read_event(self, payload: bytes) -> None:
        if payload == b"[DONE]":
            self.is_done = self.has_ended = True
            return
        chunk = self._decode(payload)
        # Before the choice beside it, whose finish reason says only that there is an error.
        if chunk.error:
            self._set_error({"error": chunk.error})
        elif chunk.base_resp is not None or (not chunk.choices and chunk.usage is None):
            # Some services report an error inside a 200 in a form of their own.
            from codeloop.model.wire.stray_errors import find_stray_error

            if (error := find_stray_error(decode_json(payload))) is not None:
                self._set_error({"error": error})
        if chunk.choices:
            self._read_choice(chunk.choices[0])
        if chunk.usage is not None:
            self.tokens = parse_usage(chunk.usage, read_tier(chunk.service_tier))

    def _read_choice(self, choice: ChatCompletionChoice) -> None:
        message = choice.delta or choice.message
        if message is not None:
            reasoning_content = (
                message.reasoning_content or message.reasoning or message.reasoning_text
            )
            if reasoning_content or message.reasoning_details:
                self._add_thinking(reasoning_content, message.reasoning_details)
            if message.content:
                self._add_text(message.content)
            if message.refusal:
                self._add_text(message.refusal)
            if message.tool_calls:
                self._add_calls(message.tool_calls)
        if choice.error is not None:
            self._set_error({"error": choice.error})
        # Not the end of the stream: token counts follow in an event of their own.
        if choice.finish_reason:
            self._set_reason(str(choice.finish_reason).lower())

    def _add_text(self, content: Any) -> None:
        if isinstance(content, str):
            if self._start != "read":
                content = self._read_start(content)
            if content:
                if self._blocks.kind != "text":
                    self._open_block("text")
                self._blocks.pieces.append(content)
            return
        # Mistral sends content as a list of parts when its model thinks.
        for item in list_objects(content):
            match item:
                case {"type": "thinking", "thinking": [*parts]}:
                    self._add_thinking(
                        "".join(read_text(part.get("text")) for part in list_objects(parts)), None
                    )
                case {"text": str(words)}:
                    self._add_text(words)
                case _:
                    continue

    def _read_start(self, content: str) -> str:
        """Take text from the beginning of an answer, and return what of it is the answer's.

        Some servers send the thinking of a model as text between `<think>` and `</think>`.
        """
        text = self._held_text + content
        self._held_text = ""
        if self._start == "unread":
            begun = text.lstrip()
            if len(begun) < len(_THINK_START) and _THINK_START.startswith(begun):
                self._held_text = text
                return ""
            if not begun.startswith(_THINK_START):
                self._start = "read"
                return text
            self._start, text = "thinking", begun.removeprefix(_THINK_START)
        thought, end, rest = (
            text.partition(_THINK_END) if self._start == "thinking" else ("", "", text)
        )
        if end:
            self._start = "thought"
        elif self._start == "thinking":
            size = next(
                n for n in range(len(_THINK_END) - 1, -1, -1) if thought.endswith(_THINK_END[:n])
            )
            thought, self._held_text = (
                thought[: len(thought) - size],
                thought[len(thought) - size :],
            )
        if thought:
            self._add_thinking(thought, None)
        rest = rest.lstrip("\n")
        if rest:
            self._start = "read"
        return rest

    def _release_text(self) -> None:
        """Pass on the text that was held back: no more of it follows."""
        text, is_thought = self._held_text, self._start == "thinking"
        self._held_text, self._start = "", "read"
        if text and is_thought:
            self._add_thinking(text, None)
        elif text:
            self._add_text(text)

    def _add_thinking(self, thought: Any, details: Any) -> None:
        if self._blocks.kind != "reasoning":
            self._open_block("reasoning")
        if isinstance(thought, str):
            self._blocks.pieces.append(thought)
        for detail in list_objects(details):
            if not thought:
                self._blocks.pieces.append(
                    read_text(detail.get("text")) or read_text(detail.get("summary"))
                )
            merge_reasoning_detail(self._reasoning_details, detail)

    def _open_block(self, kind: str) -> None:
        self._blocks.flush()
        if self._blocks.kind == "reasoning":
            self._emit_details()
        self._blocks.kind = kind
        self._blocks.number += 1

    def _emit_details(self) -> None:
        if not self._reasoning_details:
            return
        details, self._reasoning_details = self._reasoning_details, []
        if self._blocks.kind != "reasoning":
            self._blocks.kind = "reasoning"
            self._blocks.number += 1
        self._blocks.events.append(
            ReasoningDelta("", self._blocks.number, {METADATA_KEY: {"reasoning_details": details}})
        )

    def _add_calls(self, pieces: Any) -> None:
        self._release_text()
        if self._blocks.kind != "call":
            self._open_block("call")
        for piece in list_objects(pieces):
            function = piece.get("function")
            name, arguments = "", ""
            if is_object(function):
                name, arguments = (
                    read_text(function.get("name")),
                    format_arguments(function.get("arguments")),
                )
            self._blocks.events += self._blocks.calls.add_piece(
                piece.get("index"), read_text(piece.get("id")), name, arguments
            )


def merge_reasoning_detail(details: list[JSON], piece: JSON) -> None:
    """Add a streamed piece of `reasoning_details` to the entry it continues, or as a new entry."""
    last = details[-1] if details else {}
    field = {"reasoning.text": "text", "reasoning.summary": "summary"}.get(str(piece.get("type")))
    same = (
        field and last.get("type") == piece.get("type") and last.get("index") == piece.get("index")
    )
    # A signature ends its entry: what follows is a new one.
    if not field or not same or last.get("signature"):
        details.append(dict(piece))
        return
    joined_text = read_text(last.get(field)) + read_text(piece.get(field))
    last.update({name: value for name, value in piece.items() if value is not None})
    last[field] = joined_text


def parse_usage(usage: Any, tier: str = "") -> Tokens:
    """Return the counts of a `usage` object; what it lacks is 0.
    Cached tokens are taken off the input.
    """
    if not is_object(usage):
        return NO_TOKENS
    prompt, output = read_count(usage, "prompt_tokens"), read_count(usage, "completion_tokens")
    cache_read = read_count(usage, "prompt_tokens_details", "cached_tokens")
    # Fields of services that lack `prompt_tokens_details`, such as DeepSeek.
    cache_read = (
        cache_read
        or read_count(usage, "prompt_cache_hit_tokens")
        or read_count(usage, "cached_tokens")
    )
    cache_write = read_count(usage, "prompt_tokens_details", "cache_write_tokens")
    reasoning = read_count(usage, "completion_tokens_details", "reasoning_tokens")
    # Some services leave reasoning out of `completion_tokens`: their total shows it.
    if reasoning and read_count(usage, "total_tokens") == prompt + output + reasoning:
        output += reasoning
    fresh = max(prompt - cache_read - cache_write, 0)
    total = fresh + output + cache_read + cache_write
    cache = CacheTokens(read=cache_read, write=cache_write)
    return Tokens(
        input=fresh, output=output, reasoning=reasoning, cache=cache, total=total, tier=tier
    )


class ChatCompletionsModel(HttpModel):
    """A model at an endpoint; `/chat/completions` is added to the base URL,
    which mostly ends in /v1.
    """

    encoder_type = ChatCompletionsRequestEncoder
    reader_type = ChatCompletionsReader

    def __init__(
        self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = COMPATIBLE_QUIRKS
    ) -> None:
        key_headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
        super().__init__(info, endpoint, quirks, "/chat/completions", key_headers)
