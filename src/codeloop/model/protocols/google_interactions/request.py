"""Encodes requests to Google's Interactions API.

Each request has the whole conversation: the service could store it, but is told not to (`store`).
"""

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
from codeloop.model.quirks import Quirks, accepts_attachment
from codeloop.model.wire.encoding import (
    JSON_FORM,
    EncodingCache,
    collect_options,
    merge_body,
    sanitize_tool_name,
)
from codeloop.model.wire.tool_calls import is_object_text
from codeloop.model.wire.tool_schema import adapt_parameters
from codeloop.schema.wire import JSON, encode_json

METADATA_KEY = "google-interactions"
"""The key of ReasoningPiece.metadata: {"signature": text} of a thought."""
BODY_FIELDS = frozenset(
    {"response_format", "safety_settings", "service_tier", "labels", "generation_config", "store"}
)
"""Options that are fields of the body; all others are fields of its `generation_config`."""


class InteractionRequestEncoder:
    """Encodes the bodies of requests to one model."""

    def __init__(self, info: ModelInfo, quirks: Quirks) -> None:
        self._info = info
        self._quirks = quirks
        self._cache: EncodingCache[bytes] = EncodingCache(
            self._encode_message, self._encode_tool, JSON_FORM
        )

    def encode(self, request: ModelRequest) -> bytes:
        """Return the JSON body: the fields that never change, then the steps of each message."""
        head = encode_json(self._make_head(request))
        steps, _ = self._cache.encode_messages(request)
        return b"".join((head[:-1], b',"input":[', steps, b"]}"))

    def _make_head(self, request: ModelRequest) -> JSON:
        """Return the fields of the body that come before the messages."""
        head: JSON = {"model": self._info.api_id or self._info.id, "stream": True, "store": False}
        if request.system:
            head["system_instruction"] = request.system
        if request.tools:
            head["tools"] = self._cache.encode_tools(request.tools)
        generation: JSON = {}
        if request.max_tokens is not None:
            generation["max_output_tokens"] = request.max_tokens
        if request.temperature is not None and self._info.temperature:
            generation["temperature"] = request.temperature
        if request.top_p is not None:
            generation["top_p"] = request.top_p
        # Without it the service thinks, but sends no text of it.
        if self._info.reasoning:
            generation["thinking_summaries"] = "auto"
        for name, value in collect_options(self._info, request, self._quirks).items():
            if name in BODY_FIELDS:
                head[name] = value
            else:
                generation[name] = value
        generation.update(head.pop("generation_config", {}))
        config = {name: value for name, value in generation.items() if value is not None}
        if config:
            head["generation_config"] = config
        return merge_body(head, request, self._quirks)

    def _encode_tool(self, spec: ToolSpec) -> JSON:
        parameters = adapt_parameters(
            spec.parameters, self._quirks.refused_keywords, self._quirks.schema_dialect
        )
        return {
            "type": "function",
            "name": spec.name,
            "description": spec.description,
            "parameters": parameters,
        }

    def _encode_message(self, message: ModelMessage) -> bytes:
        """Return the steps of one message, comma-separated; b"" when nothing of it can be sent."""
        match message:
            case UserModelMessage(content=content):
                steps: list[JSON] = [
                    {
                        "type": "user_input",
                        "content": [self._encode_user_piece(piece) for piece in content],
                    }
                ]
            case ToolModelMessage(content=content):
                steps = [_encode_result(piece) for piece in content]
            case AssistantModelMessage(content=content, origin=origin):
                is_same_model = origin == self._info.ref
                items = (
                    _encode_assistant_piece(piece, is_same_model=is_same_model) for piece in content
                )
                steps = [step for step in items if step is not None]
        return b",".join(map(encode_json, steps))

    def _encode_user_piece(self, piece: TextPiece | ImagePiece) -> JSON:
        if isinstance(piece, TextPiece):
            return {"type": "text", "text": piece.text}
        if not accepts_attachment(self._info, self._quirks, piece.mime):
            name = piece.filename or "file"
            return {
                "type": "text",
                "text": f"[{name} ({piece.mime}) left out: this model can't read it]",
            }
        kind = "document" if piece.mime == "application/pdf" else "image"
        return {"type": kind, "data": piece.data, "mime_type": piece.mime}


def _encode_assistant_piece(
    piece: TextPiece | ReasoningPiece | CallPiece, *, is_same_model: bool
) -> JSON | None:
    match piece:
        case TextPiece(text=text):
            return (
                {"type": "model_output", "content": [{"type": "text", "text": text}]}
                if text.strip()
                else None
            )
        case CallPiece():
            arguments: Any = msgspec.Raw(
                piece.arguments.encode() if is_object_text(piece.arguments) else b"{}"
            )
            return {
                "type": "function_call",
                "id": piece.id,
                "name": sanitize_tool_name(piece.name),
                "arguments": arguments,
            }
        case ReasoningPiece(text=text, metadata=metadata):
            match metadata.get(METADATA_KEY):
                # A signature is only valid for the model that made it.
                case {"signature": str(signature)} if is_same_model:
                    summary: JSON = {"summary": [{"type": "text", "text": text}]} if text else {}
                    return {"type": "thought", "signature": signature, **summary}
                case _:
                    return None


def _encode_result(piece: ResultPiece) -> JSON:
    step: JSON = {
        "type": "function_result",
        "call_id": piece.call_id,
        "name": sanitize_tool_name(piece.name),
    }
    step["result"] = piece.output
    return {**step, "is_error": True} if piece.error else step
