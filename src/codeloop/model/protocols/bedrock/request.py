"""A request in the form of Bedrock's Converse. Equal messages give equal bytes; only the cache points move on."""

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
from codeloop.model.quirks import Quirks, reads
from codeloop.model.wire.encoding import (
    EncodedMessage,
    EncodingCache,
    call_id,
    encode_message,
    options_of,
    to_json,
    tool_name,
    with_body,
)
from codeloop.model.wire.tool_calls import is_object_text
from codeloop.model.wire.tool_schema import adapt_parameters
from codeloop.schema.wire import JSON

METADATA = "bedrock"
"""The key of ReasoningPiece.metadata: {"signature": text} of a thought, or {"redacted": base64}."""
POINT: JSON = {"cachePoint": {"type": "default"}}
"""A block up to which the service caches a request."""
MARK = b'{"cachePoint":{"type":"default"}}'
MARKED_MESSAGES = 2
"""User messages at the end that get a cache point."""
CACHING_MODELS = re.compile(
    r"anthropic\.claude-(?!(?:v2|instant|3-(?:sonnet|opus|haiku)|3-5-sonnet-20240620))|amazon\.nova"
)
"""Models that take cache points; of these, the ones below take them after the tools too."""
TOOL_CACHING_MODELS = re.compile(r"anthropic\.")
TOP = frozenset({"guardrailConfig", "performanceConfig", "serviceTier", "requestMetadata", "promptVariables"})
TOP_OBJECTS = TOP | {"outputConfig", "additionalModelResponseFieldPaths", "additionalModelRequestFields"}
"""Options that are fields of the body; all others go to the model itself."""
IMAGES = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}


class BedrockBody:
    """Writes the bodies of requests to one model."""

    def __init__(self, info: ModelInfo, quirks: Quirks) -> None:
        name = info.api_id or info.id
        self._info = info
        self._quirks = quirks
        self._caches = quirks.cache_marks and bool(CACHING_MODELS.search(name))
        self._caches_tools = self._caches and bool(TOOL_CACHING_MODELS.search(name))
        self._cache: EncodingCache[EncodedMessage] = EncodingCache(self._encode_message, self._tool)

    def encode(self, request: ModelRequest) -> bytes:
        """Return the JSON body: system prompt, tools and options first; those of one side in a row are one message."""
        messages: list[EncodedMessage] = []
        for message in self._cache.messages(request):
            if not message.blocks:
                continue
            if messages and messages[-1].role == message.role:
                messages[-1] = encode_message(message.role, messages[-1].blocks + message.blocks)
            else:
                messages.append(message)
        if self._caches:
            users = [at for at, message in enumerate(messages) if message.role == "user"][-MARKED_MESSAGES:]
            for at in users:
                messages[at] = encode_message("user", [*messages[at].blocks, MARK])
        head = to_json(self._head(request))
        start = head[:-1] + b"," if len(head) > 2 else b"{"
        return b"".join((start, b'"messages":[', b",".join([message.body for message in messages]), b"]}"))

    def _head(self, request: ModelRequest) -> JSON:
        head: JSON = {}
        if request.system:
            head["system"] = [{"text": request.system}, *([POINT] if self._caches else [])]
        tools = self._cache.tools(request.tools) if request.tools else _tools_of_history(request)
        if tools:
            head["toolConfig"] = {"tools": [*tools, *([POINT] if self._caches_tools and request.tools else [])]}
        inference: JSON = {}
        if request.max_tokens is not None:
            inference["maxTokens"] = request.max_tokens
        options = options_of(self._info, request, self._quirks)
        thinks = isinstance(options.get("thinking"), dict) and options["thinking"].get("type") != "disabled"
        if request.temperature is not None and self._info.temperature and not thinks:
            inference["temperature"] = request.temperature
        if request.top_p is not None and not thinks:
            inference["topP"] = request.top_p
        if inference:
            head["inferenceConfig"] = inference
        other_fields = {name: value for name, value in options.items() if name not in TOP_OBJECTS and value is not None}
        head.update({name: value for name, value in options.items() if name in TOP_OBJECTS})
        if other_fields:
            head["additionalModelRequestFields"] = {**head.get("additionalModelRequestFields", {}), **other_fields}
        return with_body(head, request)

    def _tool(self, spec: ToolSpec) -> JSON:
        schema = adapt_parameters(spec.parameters, self._quirks.refused_keywords, self._quirks.schema_dialect)
        return {"toolSpec": {"name": spec.name, "description": spec.description, "inputSchema": {"json": schema}}}

    def _encode_message(self, message: ModelMessage) -> EncodedMessage:
        role = "assistant" if isinstance(message, AssistantModelMessage) else "user"
        return encode_message(role, [to_json(block) for block in self._blocks(message) if block is not None])

    def _blocks(self, message: ModelMessage) -> list[JSON | None]:
        match message:
            case UserModelMessage(content=content):
                blocks = [self._user(piece, number) for number, piece in enumerate(content, 1)]
                has_text = any(block is not None and "text" in block for block in blocks)
                is_document = any(block is not None and "document" in block for block in blocks)
                # The service refuses a document without text beside it.
                return [*blocks, {"text": "See the document."}] if is_document and not has_text else blocks
            case ToolModelMessage(content=content):
                return [_result(piece) for piece in content]
            case AssistantModelMessage(content=content, origin=origin):
                blocks = [_assistant(piece, is_same_model=origin == self._info.ref) for piece in content]
                if all(block is None or "reasoningContent" in block for block in blocks):
                    return []
                return blocks

    def _user(self, piece: TextPiece | ImagePiece, number: int) -> JSON | None:
        if isinstance(piece, TextPiece):
            return _text(piece.text)
        name = piece.filename or "file"
        if not reads(self._info, self._quirks, piece.mime):
            return _text(f"[{name} ({piece.mime}) left out: this model can't read it]")
        if piece.mime == "application/pdf":
            source = {"bytes": piece.data}
            return {"document": {"format": "pdf", "name": document_name(name, number), "source": source}}
        if piece.mime not in IMAGES:
            return _text(f"[{name} ({piece.mime}) left out: Bedrock takes PNG, JPEG, GIF and WebP]")
        return {"image": {"format": IMAGES[piece.mime], "source": {"bytes": piece.data}}}


def document_name(name: str, number: int) -> str:
    """Return a document's name in the characters that are allowed, with a number that makes it differ from others."""
    plain = re.sub(r"[^A-Za-z0-9\-()\[\] ]+", " ", name.rpartition(".")[0] or name)
    return f"{' '.join(plain.split())[:150] or 'document'} {number}"


def _assistant(piece: TextPiece | ReasoningPiece | CallPiece, *, is_same_model: bool) -> JSON | None:
    match piece:
        case TextPiece():
            return _text(piece.text)
        case CallPiece():
            arguments: Any = msgspec.Raw(piece.arguments.encode() if is_object_text(piece.arguments) else b"{}")
            return {"toolUse": {"toolUseId": call_id(piece.id)[:64], "name": tool_name(piece.name), "input": arguments}}
        case ReasoningPiece(text=text, metadata=metadata):
            match metadata.get(METADATA):
                case {"redacted": str(data)} if is_same_model:
                    return {"reasoningContent": {"redactedContent": data}}
                case {"signature": str(signature)} if is_same_model:
                    return {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}
                case _:
                    return None


def _result(piece: ResultPiece) -> JSON:
    block: JSON = {"toolUseId": call_id(piece.call_id)[:64], "content": [{"text": piece.output or "(no output)"}]}
    if piece.error:
        block["status"] = "error"
    return {"toolResult": block}


def _text(text: str) -> JSON | None:
    """Return a text block; blank ones are refused by the service."""
    return {"text": text} if text.strip() else None


def _tools_of_history(request: ModelRequest) -> list[JSON]:
    """Make a minimal description of each tool that was called: a history with calls is refused without any tools."""
    names_of_calls = (
        piece.name
        for message in request.messages
        if isinstance(message, AssistantModelMessage)
        for piece in message.content
        if isinstance(piece, CallPiece)
    )
    schema: JSON = {"json": {"type": "object", "properties": {}}}
    note = "Not available now."
    names = dict.fromkeys(map(tool_name, names_of_calls))
    return [{"toolSpec": {"name": name, "description": note, "inputSchema": schema}} for name in names]
