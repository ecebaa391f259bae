"""Encodes requests to Bedrock's Converse API.

Equal messages give equal bytes, since the service's cache compares from the first byte on;
only the cache points move.
"""

import re
from typing import Any

import msgspec

from codeloop.kit.text.patterns import compile_once
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
from codeloop.schema.wire import JSON, encode_json

METADATA_KEY = "bedrock"
"""The key of ReasoningPiece.metadata: {"signature": text} of a thought, or {"redacted": base64}."""
CACHE_POINT: JSON = {"cachePoint": {"type": "default"}}
"""A block up to which the service caches a request."""
CACHE_POINT_JSON = b'{"cachePoint":{"type":"default"}}'
MARKED_MESSAGE_COUNT = 2
"""User messages at the end that get a cache point: the last one writes the cache
that the next request finds.
"""
CACHING_MODELS = (
    r"anthropic\.claude-(?!(?:v2|instant|3-(?:sonnet|opus|haiku)|3-5-sonnet-20240620))|amazon\.nova"
)
"""Models that accept cache points: others refuse the request."""
TOOL_CACHING_MODELS = r"anthropic\."
"""Those of them that accept cache points after the tools too."""
BODY_FIELDS = frozenset(
    {
        "guardrailConfig",
        "performanceConfig",
        "serviceTier",
        "requestMetadata",
        "promptVariables",
        "outputConfig",
        "additionalModelResponseFieldPaths",
        "additionalModelRequestFields",
    }
)
"""Options that are fields of the body; all others are the model's own
(`additionalModelRequestFields`).
"""
MAX_CALL_ID_LENGTH = 64
"""The characters that the service accepts in a call's id."""
IMAGE_FORMATS = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}


class BedrockRequestEncoder:
    """Encodes the bodies of requests to one model."""

    def __init__(self, info: ModelInfo, quirks: Quirks) -> None:
        name = info.api_id or info.id
        self._info = info
        self._quirks = quirks
        self._accepts_cache_points = quirks.accepts_cache_marks and bool(
            compile_once(CACHING_MODELS).search(name)
        )
        self._accepts_tool_cache_points = self._accepts_cache_points and bool(
            compile_once(TOOL_CACHING_MODELS).search(name)
        )
        # Every other message is the user's.
        self._cache = EncodingCache(
            self._encode_message, self._encode_tool, BLOCKS_FORM, 2 * MARKED_MESSAGE_COUNT
        )

    def encode(self, request: ModelRequest) -> bytes:
        """Return the JSON body: system prompt, tools and options, then the messages.

        Successive messages of one role become one: the service wants the roles to alternate.
        """
        earlier, messages = self._cache.encode_messages(request)
        if self._accepts_cache_points:
            user_indexes = [
                index for index, message in enumerate(messages) if message.role == "user"
            ]
            for index in user_indexes[-MARKED_MESSAGE_COUNT:]:
                messages[index] = join_blocks("user", [*messages[index].blocks, CACHE_POINT_JSON])
        head = encode_json(self._make_head(request))
        start = head[:-1] + b"," if len(head) > 2 else b"{"
        bodies = b",".join(filter(None, (earlier, *(message.body for message in messages))))
        return b"".join((start, b'"messages":[', bodies, b"]}"))

    def _make_head(self, request: ModelRequest) -> JSON:
        """Return the fields of the body that come before the messages."""
        head: JSON = {}
        if request.system:
            head["system"] = [
                {"text": request.system},
                *([CACHE_POINT] if self._accepts_cache_points else []),
            ]
        tools = (
            self._cache.encode_tools(request.tools)
            if request.tools
            else _describe_called_tools(request)
        )
        if tools:
            head["toolConfig"] = {
                "tools": [
                    *tools,
                    *([CACHE_POINT] if self._accepts_tool_cache_points and request.tools else []),
                ]
            }
        inference: JSON = {}
        if request.max_tokens is not None:
            inference["maxTokens"] = request.max_tokens
        options = collect_options(self._info, request, self._quirks)
        # Claude accepts no temperature together with thinking.
        is_thinking = (
            isinstance(options.get("thinking"), dict)
            and options["thinking"].get("type") != "disabled"
        )
        if request.temperature is not None and self._info.temperature and not is_thinking:
            inference["temperature"] = request.temperature
        if request.top_p is not None and not is_thinking:
            inference["topP"] = request.top_p
        if inference:
            head["inferenceConfig"] = inference
        head.update({name: value for name, value in options.items() if name in BODY_FIELDS})
        model_fields = {
            name: value
            for name, value in options.items()
            if name not in BODY_FIELDS and value is not None
        }
        if model_fields:
            head["additionalModelRequestFields"] = {
                **head.get("additionalModelRequestFields", {}),
                **model_fields,
            }
        return merge_body(head, request, self._quirks)

    def _encode_tool(self, spec: ToolSpec) -> JSON:
        schema = adapt_parameters(
            spec.parameters, self._quirks.refused_keywords, self._quirks.schema_dialect
        )
        return {
            "toolSpec": {
                "name": spec.name,
                "description": spec.description,
                "inputSchema": {"json": schema},
            }
        }

    def _encode_message(self, message: ModelMessage) -> EncodedMessage:
        role = "assistant" if isinstance(message, AssistantModelMessage) else "user"
        return join_blocks(
            role,
            [encode_json(block) for block in self._encode_blocks(message) if block is not None],
        )

    def _encode_blocks(self, message: ModelMessage) -> list[JSON | None]:
        match message:
            case UserModelMessage(content=content):
                blocks = [
                    self._encode_user_piece(piece, number)
                    for number, piece in enumerate(content, 1)
                ]
                has_text = any(block is not None and "text" in block for block in blocks)
                has_document = any(block is not None and "document" in block for block in blocks)
                # The service refuses a document in a message without text.
                return (
                    [*blocks, {"text": "See the document."}]
                    if has_document and not has_text
                    else blocks
                )
            case ToolModelMessage(content=content):
                return [_encode_result(piece) for piece in content]
            case AssistantModelMessage(content=content, origin=origin):
                blocks = [
                    _encode_assistant_piece(piece, is_same_model=origin == self._info.ref)
                    for piece in content
                ]
                # The service refuses a message of thinking alone.
                if all(block is None or "reasoningContent" in block for block in blocks):
                    return []
                return blocks

    def _encode_user_piece(self, piece: TextPiece | ImagePiece, number: int) -> JSON | None:
        if isinstance(piece, TextPiece):
            return _encode_text(piece.text)
        name = piece.filename or "file"
        if not accepts_attachment(self._info, self._quirks, piece.mime):
            return _encode_text(f"[{name} ({piece.mime}) left out: this model can't read it]")
        if piece.mime == "application/pdf":
            source = {"bytes": piece.data}
            return {
                "document": {
                    "format": "pdf",
                    "name": make_document_name(name, number),
                    "source": source,
                }
            }
        if piece.mime not in IMAGE_FORMATS:
            return _encode_text(
                f"[{name} ({piece.mime}) left out: Bedrock takes PNG, JPEG, GIF and WebP]"
            )
        return {"image": {"format": IMAGE_FORMATS[piece.mime], "source": {"bytes": piece.data}}}


def make_document_name(name: str, number: int) -> str:
    """Return a file's name in the characters that the service allows,
    with a number that makes it unique.
    """
    plain = re.sub(r"[^A-Za-z0-9\-()\[\] ]+", " ", name.rpartition(".")[0] or name)
    return f"{' '.join(plain.split())[:150] or 'document'} {number}"


def _encode_assistant_piece(
    piece: TextPiece | ReasoningPiece | CallPiece, *, is_same_model: bool
) -> JSON | None:
    match piece:
        case TextPiece():
            return _encode_text(piece.text)
        case CallPiece():
            arguments: Any = msgspec.Raw(
                piece.arguments.encode() if is_object_text(piece.arguments) else b"{}"
            )
            return {
                "toolUse": {
                    "toolUseId": sanitize_call_id(piece.id)[:MAX_CALL_ID_LENGTH],
                    "name": sanitize_tool_name(piece.name),
                    "input": arguments,
                }
            }
        case ReasoningPiece(text=text, metadata=metadata):
            match metadata.get(METADATA_KEY):
                case {"redacted": str(data)} if is_same_model:
                    return {"reasoningContent": {"redactedContent": data}}
                case {"signature": str(signature)} if is_same_model:
                    return {
                        "reasoningContent": {
                            "reasoningText": {"text": text, "signature": signature}
                        }
                    }
                case _:
                    return None


def _encode_result(piece: ResultPiece) -> JSON:
    block: JSON = {
        "toolUseId": sanitize_call_id(piece.call_id)[:MAX_CALL_ID_LENGTH],
        "content": [{"text": piece.output or "(no output)"}],
    }
    if piece.error:
        block["status"] = "error"
    return {"toolResult": block}


def _encode_text(text: str) -> JSON | None:
    """Return a text block; blank ones are refused by the service."""
    return {"text": text} if text.strip() else None


def _describe_called_tools(request: ModelRequest) -> list[JSON]:
    """Return a minimal description of each tool that was called: without tools,
    a history with calls is refused.
    """
    names_of_calls = (
        piece.name
        for message in request.messages
        if isinstance(message, AssistantModelMessage)
        for piece in message.content
        if isinstance(piece, CallPiece)
    )
    schema: JSON = {"json": {"type": "object", "properties": {}}}
    note = "Not available now."
    names = dict.fromkeys(map(sanitize_tool_name, names_of_calls))
    return [
        {"toolSpec": {"name": name, "description": note, "inputSchema": schema}} for name in names
    ]
