"""Encodes requests to Google's generateContent API.

Equal messages give equal bytes, and the fields that never change come first: the service's cache
compares from the first byte on.
"""

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
from codeloop.model.protocols.google.schema import convert_parameters
from codeloop.model.quirks import Quirks, accepts_attachment
from codeloop.model.wire.encoding import (
    JSON_FORM,
    EncodingCache,
    collect_options,
    merge_body,
    sanitize_tool_name,
)
from codeloop.model.wire.tool_calls import is_object_text
from codeloop.schema.wire import JSON, encode_json

METADATA_KEY = "google"
"""The key of ReasoningPiece.metadata: {"signature": text,
"part": "text" | "empty" | "call" | "thought"}.

`part`: the part that the signature came with. "call" has the call's id in "call"; "text" is the
text before it; "empty" is a part of its own without text; "thought" is the thought itself.
"""
PLACEHOLDER_SIGNATURE = "skip_thought_signature_validator"
"""Google's placeholder for the signature of a call that this model did not make."""
MODELS_WITHOUT_SIGNATURES = r"gemini-[12]\b|gemma"
"""Models before Gemini 3, which accept calls without a signature."""
BODY_FIELDS = frozenset(
    {"safetySettings", "cachedContent", "toolConfig", "serviceTier", "labels", "generationConfig"}
)
"""Options that are fields of the body; all others are fields of its `generationConfig`."""


class GoogleRequestEncoder:
    """Encodes the bodies of requests to one model."""

    def __init__(self, info: ModelInfo, quirks: Quirks) -> None:
        self._info = info
        self._quirks = quirks
        self._needs_signatures = not compile_once(MODELS_WITHOUT_SIGNATURES).search(
            info.api_id or info.id
        )
        self._cache: EncodingCache[bytes] = EncodingCache(
            self._encode_message, _encode_tool, JSON_FORM
        )

    def encode(self, request: ModelRequest) -> bytes:
        """Return the JSON body: system prompt, tools and options first,
        then a content for each message.
        """
        head = encode_json(self._make_head(request))
        contents, _ = self._cache.encode_messages(request)
        start = head[:-1] + b"," if len(head) > 2 else b"{"
        return b"".join((start, b'"contents":[', contents, b"]}"))

    def _make_head(self, request: ModelRequest) -> JSON:
        """Return the fields of the body that come before the messages."""
        options = collect_options(self._info, request, self._quirks)
        generation: JSON = {}
        if request.max_tokens is not None:
            generation["maxOutputTokens"] = request.max_tokens
        if request.temperature is not None and self._info.temperature:
            generation["temperature"] = request.temperature
        if request.top_p is not None:
            generation["topP"] = request.top_p
        if self._info.reasoning:
            generation["thinkingConfig"] = {"includeThoughts": True}
        fields: JSON = {}
        for name, value in options.items():
            if name in BODY_FIELDS:
                fields[name] = value
            else:
                generation[name] = value
        generation.update(fields.pop("generationConfig", {}))
        # Options replace the whole object: the request for summaries of thoughts is added again.
        thinking: Any = generation.get("thinkingConfig")
        if self._info.reasoning and isinstance(thinking, dict):
            generation["thinkingConfig"] = {"includeThoughts": True, **thinking}
        head: JSON = {}
        # A cache at the service holds system prompt and tools already;
        # the service refuses both in addition to one.
        if not fields.get("cachedContent"):
            if request.system:
                head["systemInstruction"] = {"parts": [{"text": request.system}]}
            if request.tools:
                head["tools"] = [{"functionDeclarations": self._cache.encode_tools(request.tools)}]
        head.update(fields)
        config = {name: value for name, value in generation.items() if value is not None}
        if config:
            head["generationConfig"] = config
        return merge_body(head, request, self._quirks)

    def _encode_message(self, message: ModelMessage) -> bytes:
        """Return the content of one message; b"" when nothing of it can be sent."""
        match message:
            case UserModelMessage(content=content):
                parts = [self._encode_user_piece(piece) for piece in content]
            case ToolModelMessage(content=content):
                parts = [_encode_result(piece) for piece in content]
            case AssistantModelMessage():
                parts = self._encode_assistant(message)
        role = "model" if isinstance(message, AssistantModelMessage) else "user"
        return encode_json({"role": role, "parts": parts}) if parts else b""

    def _encode_user_piece(self, piece: TextPiece | ImagePiece) -> JSON:
        if isinstance(piece, TextPiece):
            return {"text": piece.text}
        if not accepts_attachment(self._info, self._quirks, piece.mime):
            return {
                "text": f"[{piece.filename or 'file'} ({piece.mime}) left out: this model can't read it]"
            }
        return {"inlineData": {"mimeType": piece.mime, "data": piece.data}}

    def _encode_assistant(self, message: AssistantModelMessage) -> list[JSON]:
        """Return the parts of an answer, each with the signature that it came with:
        the service checks them.
        """
        is_same_model = message.origin == self._info.ref
        parts: list[JSON] = []
        signatures: dict[str, str] = {}
        is_first_call = True
        for piece in message.content:
            match piece:
                case TextPiece(text=text):
                    if text.strip():
                        parts.append({"text": text})
                case ReasoningPiece() if is_same_model:
                    _add_signature(piece, parts, signatures)
                case ReasoningPiece():
                    pass
                case CallPiece():
                    part = _encode_call(piece)
                    signature = signatures.get(piece.id)
                    # Of calls made together only the first one has a signature, and needs one.
                    if not signature and self._needs_signatures and is_first_call:
                        signature = PLACEHOLDER_SIGNATURE
                    is_first_call = False
                    parts.append({**part, "thoughtSignature": signature} if signature else part)
        return parts


def _add_signature(piece: ReasoningPiece, parts: list[JSON], signatures: dict[str, str]) -> None:
    """Put a signature back where it came from; that of a call goes into `signatures`,
    by the call's id.
    """
    match piece.metadata.get(METADATA_KEY):
        case {"signature": str(signature), "part": "call", "call": str(call)}:
            signatures[call] = signature
        case {"signature": str(signature), "part": "thought"}:
            parts.append({"text": piece.text, "thought": True, "thoughtSignature": signature})
        # Not if the text was blank and left out: then the signature goes into an empty part,
        # as below.
        case {"signature": str(signature), "part": "text"} if parts and parts[-1].keys() == {
            "text"
        }:
            parts[-1]["thoughtSignature"] = signature
        case {"signature": str(signature)}:
            parts.append({"text": "", "thoughtSignature": signature})
        case _:
            pass


def _encode_call(piece: CallPiece) -> JSON:
    arguments = msgspec.Raw(piece.arguments.encode() if is_object_text(piece.arguments) else b"{}")
    return {
        "functionCall": {"id": piece.id, "name": sanitize_tool_name(piece.name), "args": arguments}
    }


def _encode_result(piece: ResultPiece) -> JSON:
    response = {"error" if piece.error else "output": piece.output}
    return {
        "functionResponse": {
            "id": piece.call_id,
            "name": sanitize_tool_name(piece.name),
            "response": response,
        }
    }


def _encode_tool(spec: ToolSpec) -> JSON:
    declaration: JSON = {"name": spec.name, "description": spec.description}
    parameters = convert_parameters(spec.parameters)
    return {**declaration, "parameters": parameters} if parameters is not None else declaration
