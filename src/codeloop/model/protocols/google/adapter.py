"""Models behind Google's generateContent: Gemini by API key, and Gemini on Vertex AI."""

from typing import Any
from urllib.parse import quote

import msgspec

from codeloop.kit.jsonc import is_object
from codeloop.model.chat import FinishReason, ModelInfo, UsageUpdate
from codeloop.model.protocols.google.request import METADATA_KEY, GoogleRequestEncoder
from codeloop.model.quirks import GOOGLE_QUIRKS, Quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.http_model import HttpModel
from codeloop.model.wire.json_values import read_count, read_text
from codeloop.model.wire.response_reader import ResponseReader
from codeloop.model.wire.tool_calls import format_arguments
from codeloop.schema.message import NO_TOKENS, CacheTokens, Tokens
from codeloop.schema.wire import JSON, bound_depth, decode_json

FINISH_REASONS: dict[str, FinishReason] = {"STOP": "stop", "MAX_TOKENS": "length"}
BLOCK_REASONS = {
    "SAFETY": "its safety filter found the content harmful",
    "RECITATION": "it would have repeated a text that others own",
    "LANGUAGE": "it does not speak the language",
    "BLOCKLIST": "a word on its blocklist came up",
    "PROHIBITED_CONTENT": "its rules prohibit the content",
    "SPII": "it would have named personal data",
    "MODEL_ARMOR": "the Model Armor rules of the account block it",
    "JAILBREAK": "it takes the prompt for an attempt to get round its rules",
    "IMAGE_SAFETY": "its safety filter found an image harmful",
}
"""Why Google stopped an answer or did not begin it, by `finishReason` or `blockReason`."""
RETRYABLE_REASONS = {
    "MALFORMED_FUNCTION_CALL": "the model made a call that can't be read",
    "MALFORMED_RESPONSE": "the model's answer can't be read",
    "UNEXPECTED_TOOL_CALL": "the model called a tool that was not offered",
}
"""Reasons of an end after which another try may succeed."""


class GoogleFunctionCall(msgspec.Struct, gc=False):
    """A call, whole."""

    name: Any = ""
    args: Any = None
    id: Any = ""


class GooglePart(msgspec.Struct, gc=False, rename="camel"):
    """A part of the answer: text, thought or call; the signature belongs to it."""

    text: Any = None
    thought: bool = False
    thought_signature: Any = None
    function_call: GoogleFunctionCall | None = None


class GoogleContent(msgspec.Struct, gc=False):
    """The parts that a chunk adds."""

    parts: list[GooglePart] = []


class GoogleCandidate(msgspec.Struct, gc=False, rename="camel"):
    """The one answer."""

    content: GoogleContent | None = None
    finish_reason: Any = None
    finish_message: Any = None


class GoogleChunk(msgspec.Struct, gc=False, rename="camel"):
    """One event of the stream, or the whole answer."""

    candidates: list[GoogleCandidate] | None = None
    usage_metadata: Any = None
    prompt_feedback: Any = None
    error: Any = None


class GoogleReader(ResponseReader):
    """Reads one answer. A change between text and thought begins a new block;
    so does a part with a signature.
    """

    finish_reasons = FINISH_REASONS

    def __init__(self) -> None:
        super().__init__()
        self._decode = bound_depth(msgspec.json.Decoder(GoogleChunk).decode)
        self._block_number = 0
        self._has_counts = False

    def _read_document(self, body: bytes) -> None:
        """Take an answer that did not stream: one chunk, or a list of them."""
        chunks = (
            decode_json(body, list[GoogleChunk]) if body.startswith(b"[") else [self._decode(body)]
        )
        for chunk in chunks:
            self._read_chunk(chunk)

    def _read_event(self, payload: bytes) -> None:
        self._read_chunk(self._decode(payload))

    def _read_chunk(self, chunk: GoogleChunk) -> None:
        if chunk.error is not None:
            self._set_error({"error": chunk.error})
            return
        if chunk.usage_metadata is not None:
            self.tokens = parse_usage(chunk.usage_metadata)
            # Each chunk repeats the counts; the first ones have the size of the request,
            # the last ones the total.
            if not self._has_counts:
                self._has_counts = True
                self._blocks.events.append(UsageUpdate(self.tokens))
        # A prompt that was blocked has no candidate, only feedback.
        if chunk.candidates:
            candidate = chunk.candidates[0]
            if candidate.content is not None:
                for part in candidate.content.parts:
                    self._read_part(part)
            if candidate.finish_reason:
                self._end_answer(
                    read_text(candidate.finish_reason), read_text(candidate.finish_message)
                )
        elif is_object(chunk.prompt_feedback) and (
            reason := read_text(chunk.prompt_feedback.get("blockReason"))
        ):
            self._block_answer(reason, read_text(chunk.prompt_feedback.get("blockReasonMessage")))

    def _read_part(self, part: GooglePart) -> None:
        signature = read_text(part.thought_signature)
        if part.function_call is not None:
            self._add_call(part.function_call, signature)
            return
        words = read_text(part.text)
        kind = "reasoning" if part.thought else "text"
        if words:
            # Another number: a call or a signature came in between,
            # after which the same kind is a new block.
            if kind != self._blocks.kind or signature or self._blocks.number != self._block_number:
                self._open_block(kind)
            self._blocks.pieces.append(words)
        if not signature:
            return
        if part.thought:
            self._add_signature({"signature": signature, "part": "thought"}, in_new_block=not words)
        else:
            self._add_signature(
                {"signature": signature, "part": "text" if words else "empty"}, in_new_block=True
            )

    def _add_call(self, function_call: GoogleFunctionCall, signature: str) -> None:
        self._blocks.flush()
        # A call comes whole and mostly without an id; the assembler makes one.
        call, events = self._blocks.calls.open_call(
            read_text(function_call.id), read_text(function_call.name)
        )
        if signature:
            self._add_signature(
                {"signature": signature, "part": "call", "call": call.id}, in_new_block=True
            )
        self._block_number += 1
        self._blocks.events += events
        self._blocks.events += self._blocks.calls.add_arguments(
            call, format_arguments(function_call.args) or "{}"
        )
        self._blocks.events += self._blocks.calls.complete_call(call)

    def _open_block(self, kind: str) -> None:
        self._blocks.flush()
        self._block_number += 1
        self._blocks.kind, self._blocks.number = kind, self._block_number

    def _add_signature(self, metadata: JSON, *, in_new_block: bool) -> None:
        """Emit a signature, in the current block of thinking or in a new one.

        Blocks are stored in the order in which they came,
        so the text after a signature begins another one.
        """
        if in_new_block:
            self._block_number += 1
        self._blocks.add_metadata(self._block_number, {METADATA_KEY: metadata})
        self._block_number += 1

    def _end_answer(self, reason: str, detail: str) -> None:
        # A call that is complete may run already, and must not be made twice.
        # 500: such an error is tried again.
        if reason in RETRYABLE_REASONS and not self._blocks.calls.has_ready_call:
            self._set_error(
                {
                    "error": {
                        "code": 500,
                        "message": f"{RETRYABLE_REASONS[reason]} ({detail or reason})",
                    }
                }
            )
        elif reason in BLOCK_REASONS or reason == "MISSING_THOUGHT_SIGNATURE":
            self._block_answer(reason, detail)
        else:
            self._reason = reason
            self.has_ended = True

    def _block_answer(self, reason: str, detail: str) -> None:
        why = BLOCK_REASONS.get(reason, "it gives no reason")
        message = f"Google stopped the answer: {why} ({detail or reason})"
        self._set_error({"error": {"code": "content_filter", "message": message}})


def parse_usage(usage: Any) -> Tokens:
    """Return the counts of `usageMetadata`. The prompt's count includes cached tokens,
    the answer's no thoughts.
    """
    if not is_object(usage):
        return NO_TOKENS
    prompt = read_count(usage, "promptTokenCount") + read_count(usage, "toolUsePromptTokenCount")
    cache_read, thoughts = (
        read_count(usage, "cachedContentTokenCount"),
        read_count(usage, "thoughtsTokenCount"),
    )
    output = read_count(usage, "candidatesTokenCount") + thoughts
    return Tokens(
        input=max(prompt - cache_read, 0),
        output=output,
        reasoning=thoughts,
        cache=CacheTokens(read=cache_read, write=0),
        total=read_count(usage, "totalTokenCount") or prompt + output,
    )


class GoogleGenerateContent(HttpModel):
    """A model at an endpoint; `/models/NAME:streamGenerateContent` is added to the base URL."""

    encoder_type = GoogleRequestEncoder
    reader_type = GoogleReader

    def __init__(self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = GOOGLE_QUIRKS) -> None:
        name = quote(info.api_id or info.id, safe="@")
        key_headers = {"x-goog-api-key": endpoint.key} if endpoint.key else {}
        # Without `alt=sse` the service streams one large JSON array.
        super().__init__(
            info, endpoint, quirks, f"/models/{name}:streamGenerateContent?alt=sse", key_headers
        )
