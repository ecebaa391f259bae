"""Encodes requests to Anthropic's messages API.

Equal messages give equal bytes, since the service's cache compares from the first byte on;
only the cache marks move.
"""

import re
from typing import Any

import msgspec

from codeloop.model.chat import (
    AssistantModelMessage,
    CallPiece,
    ImagePiece,
    ModelInfo,
    ModelMessage,
    ModelRequest,
    ReasoningPiece,
    ResultPiece,
    TextPiece,
    ToolModelMessage,
    ToolSpec,
    UserModelMessage,
)
from codeloop.model.protocols.anthropic.thinking import can_have_budget
from codeloop.model.quirks import ADAPTIVE_MODEL_PATTERN, Quirks, accepts_attachment
from codeloop.model.wire.encoding import (
    BLOCKS_FORM,
    EncodedMessage,
    EncodingCache,
    collect_options,
    join_blocks,
    merge_body,
    sanitize_call_id,
    sanitize_tool_name,
)
from codeloop.model.wire.tool_calls import is_object_text
from codeloop.model.wire.tool_schema import adapt_parameters
from codeloop.schema.limits import MODEL_OUTPUT_TOKENS
from codeloop.schema.wire import JSON, encode_json

METADATA_KEY = "anthropic"
"""The key of ReasoningPiece.metadata: {"signature": text} of a thought, or {"redacted": data}."""
CACHE_MARK, HOUR_CACHE_MARK = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
"""Marks up to which the service caches a request: for five minutes after it was last sent,
or for an hour.
"""
# The last mark writes the cache for the next request,
# the one before finds what the last request wrote.
MARKED_MESSAGE_COUNT = 2
"""Messages at the end that get a mark: with those of tools and system prompt four,
the most that the service takes.
"""
EFFORT_BY_BUDGET = ((24_000, "max"), (12_000, "high"), (4_000, "medium"), (0, "low"))
"""Least thinking budgets (tokens), and the efforts that replace them for
models that take no budget.
"""
_THINKING_TYPES = ("thinking", "redacted_thinking")
THINKING_BLOCK_STARTS = (b'{"type":"thinking"', b'{"type":"redacted_thinking"')
"""The beginnings of thinking blocks, which can't carry a cache mark."""


class AnthropicRequestEncoder:
    """Encodes the bodies of requests to one model."""

    def __init__(self, info: ModelInfo, quirks: Quirks, leading_fields: JSON | None = None) -> None:
        """`leading_fields`: the first fields of each body; by default the model's name."""
        name = info.api_id or info.id
        self._info = info
        self._quirks = quirks
        self._leading_fields: JSON = {"model": name} if leading_fields is None else leading_fields
        # Such a model takes an effort in place of a thinking budget, and no temperature.
        self._is_adaptive = bool(re.search(ADAPTIVE_MODEL_PATTERN, name.lower()))
        self._cache = EncodingCache(
            self._encode_message, self._encode_tool, BLOCKS_FORM, MARKED_MESSAGE_COUNT
        )

    def encode(self, request: ModelRequest) -> bytes:
        """Return the JSON body: options, system prompt and tools, then the messages.

        Successive messages of one role become one: the service wants the roles to alternate.
        """
        earlier, last = self._cache.encode_messages(request)
        if self._quirks.accepts_cache_marks:
            mark = self._choose_mark(request)
            last = [
                join_blocks(message.role, _add_cache_mark(message.blocks, mark)) for message in last
            ]
        bodies = b",".join(filter(None, (earlier, *(message.body for message in last))))
        head = encode_json(self._make_head(request))
        return b"".join((head[:-1], b',"messages":[', bodies, b"]}"))

    def _make_head(self, request: ModelRequest) -> JSON:
        """Return the fields of the body that come before the messages."""
        info = self._info
        # The service requires `max_tokens`.
        max_tokens = request.max_tokens or min(
            info.limits.output or MODEL_OUTPUT_TOKENS.value, MODEL_OUTPUT_TOKENS.value
        )
        head: JSON = {**self._leading_fields, "max_tokens": max_tokens, "stream": True}
        options = self._make_options(request)
        thinking: Any = options.get("thinking")
        match thinking:
            case {"type": "enabled", "budget_tokens": int(budget)} if budget > max_tokens // 2:
                # The budget is part of `max_tokens`: the answer needs room in addition to it.
                total, output_limit = budget + max_tokens, info.limits.output
                # A limit below the budget is wrong, or unknown (0).
                head["max_tokens"] = min(total, output_limit) if output_limit > budget else total
            # The service takes no temperature together with thinking.
            case {"type": "enabled" | "adaptive"}:
                pass
            case _:
                if request.temperature is not None and info.temperature and not self._is_adaptive:
                    head["temperature"] = request.temperature
                if request.top_p is not None and not self._is_adaptive:
                    head["top_p"] = request.top_p
        head.update(options)
        head = merge_body(
            {name: value for name, value in head.items() if value is not None},
            request,
            self._quirks,
        )
        mark: JSON = (
            {"cache_control": self._choose_mark(request)}
            if self._quirks.accepts_cache_marks
            else {}
        )
        if request.tools:
            *tools, last = self._cache.encode_tools(request.tools)
            head["tools"] = [*tools, {**last, **mark}]
        if request.system:
            head["system"] = [{"type": "text", "text": request.system, **mark}]
        return head

    def _choose_mark(self, request: ModelRequest) -> dict[str, str]:
        return (
            HOUR_CACHE_MARK
            if request.wants_hour_cache and self._quirks.accepts_hour_marks
            else CACHE_MARK
        )

    def _make_options(self, request: ModelRequest) -> JSON:
        """Return the options, with thinking as the model takes it: newer models want an
        effort in place of a budget.
        """
        options = collect_options(self._info, request, self._quirks)
        match options.get("thinking"):
            case {"type": "enabled", "budget_tokens": int(budget)} if self._is_adaptive:
                effort = next(
                    effort for least, effort in EFFORT_BY_BUDGET if max(budget, 0) >= least
                )
                return {
                    **options,
                    "thinking": {"type": "adaptive", "display": "summarized"},
                    "output_config": {"effort": effort, **options.get("output_config", {})},
                }
            case {"type": "enabled"} if not can_have_budget(request, self._info.ref):
                return {name: value for name, value in options.items() if name != "thinking"}
            case _:
                return options

    def _encode_tool(self, spec: ToolSpec) -> JSON:
        schema = adapt_parameters(
            spec.parameters, self._quirks.refused_keywords, self._quirks.schema_dialect
        )
        return {"name": spec.name, "description": spec.description, "input_schema": schema}

    def _encode_message(self, message: ModelMessage) -> EncodedMessage:
        return join_blocks(
            "assistant" if isinstance(message, AssistantModelMessage) else "user",
            self._encode_blocks(message),
        )

    def _encode_blocks(self, message: ModelMessage) -> list[bytes]:
        """Return the content blocks of one message, each as JSON;
        none when nothing of it can be sent.
        """
        match message:
            case UserModelMessage(content=content):
                blocks = [self._encode_user_piece(piece) for piece in content]
            case ToolModelMessage(content=content):
                blocks = [_encode_result(piece) for piece in content]
            case AssistantModelMessage(content=content, origin=origin):
                blocks = [
                    _encode_assistant_piece(piece, is_same_model=origin == self._info.ref)
                    for piece in content
                ]
                # An answer that was cut while the model thought: the service refuses a
                # message of thinking alone.
                if all(block is None or block["type"] in _THINKING_TYPES for block in blocks):
                    return []
        return [encode_json(block) for block in blocks if block is not None]

    def _encode_user_piece(self, piece: TextPiece | ImagePiece) -> JSON | None:
        if isinstance(piece, TextPiece):
            return _encode_text(piece.text)
        name = piece.filename or "file"
        if not accepts_attachment(self._info, self._quirks, piece.mime):
            return _encode_text(f"[{name} ({piece.mime}) left out: this model can't read it]")
        source = {"type": "base64", "media_type": piece.mime, "data": piece.data}
        if piece.mime == "application/pdf":
            return {"type": "document", "source": source, "title": name}
        return {"type": "image", "source": source}


def _encode_assistant_piece(
    piece: TextPiece | ReasoningPiece | CallPiece, *, is_same_model: bool
) -> JSON | None:
    match piece:
        case TextPiece():
            return _encode_text(piece.text)
        case CallPiece():
            arguments = msgspec.Raw(
                piece.arguments.encode() if is_object_text(piece.arguments) else b"{}"
            )
            return {
                "type": "tool_use",
                "id": sanitize_call_id(piece.id),
                "name": sanitize_tool_name(piece.name),
                "input": arguments,
            }
        case ReasoningPiece():
            return _encode_thinking(piece) if is_same_model else None


def _encode_thinking(piece: ReasoningPiece) -> JSON | None:
    """Return thinking as the model sent it; None without a signature,
    since the service would refuse it.
    """
    match piece.metadata.get(METADATA_KEY):
        case {"redacted": str(data)}:
            return {"type": "redacted_thinking", "data": data}
        case {"signature": str(signature)} if signature:
            return {"type": "thinking", "thinking": piece.text, "signature": signature}
        case _:
            return None


def _encode_result(piece: ResultPiece) -> JSON:
    block: JSON = {"type": "tool_result", "tool_use_id": sanitize_call_id(piece.call_id)}
    if piece.output:
        block["content"] = piece.output
    if piece.error:
        block["is_error"] = True
    return block


def _encode_text(text: str) -> JSON | None:
    """Return a text block; blank ones are refused by the service."""
    return {"type": "text", "text": text} if text.strip() else None


def _add_cache_mark(blocks: list[bytes], mark: dict[str, str]) -> list[bytes]:
    """Put the cache mark on the last block that may carry one."""
    for index, block in reversed([*enumerate(blocks)]):
        if not block.startswith(THINKING_BLOCK_STARTS):
            marked_block = b"".join((block[:-1], b',"cache_control":', encode_json(mark), b"}"))
            return [*blocks[:index], marked_block, *blocks[index + 1 :]]
    return blocks
