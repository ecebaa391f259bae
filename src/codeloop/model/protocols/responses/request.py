"""Encodes requests to OpenAI's Responses API.

Each request has the whole conversation: the service could store it, but is told not to (`store`).
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from codeloop.kit.jsonc import is_object
from codeloop.kit.wildcard import matches
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
from codeloop.model.protocols.responses.patch_grammar import (
    PATCH_ARGUMENT,
    PATCH_TOOL,
    encode_patch_tool,
)
from codeloop.model.quirks import Quirks, accepts_attachment
from codeloop.model.wire.encoding import (
    JSON_FORM,
    EncodingCache,
    collect_options,
    merge_body,
    sanitize_call_id,
    sanitize_tool_name,
)
from codeloop.model.wire.tool_schema import adapt_parameters
from codeloop.schema.wire import JSON, encode_json

METADATA_KEY = "responses"
"""The key of a piece's metadata: {"id": text, "encrypted_content": text} of thinking,
{"phase": text} of text.
"""
MAX_CALL_ID_LENGTH = 64
"""The characters that the service accepts in a call's id."""
NESTED_OPTIONS = {
    "reasoning_effort": ("reasoning", "effort"),
    "reasoningSummary": ("reasoning", "summary"),
    "verbosity": ("text", "verbosity"),
    "max_tokens": ("", "max_output_tokens"),
}
"""Options by their names in chat completions -> the object (empty: the body) and
the field of this protocol.
"""
THINKING_FEATURE, PHASE_FEATURE, STRICT_FEATURE = "earlier thinking", "phase", "strict"
"""Features of messages and tools that a request can omit; see `Quirks.omitted`.

Earlier thinking that is sent back; the field `phase` of earlier texts (`commentary`,
`final_answer`), which the service sets and wants back; the field `strict` of tools.
"""


class ResponsesRequestEncoder:
    """Encodes the bodies of requests to one model."""

    def __init__(self, info: ModelInfo, quirks: Quirks) -> None:
        self._info = info
        self._quirks = quirks
        name = info.api_id or info.id
        self._accepts_patches = any(
            matches(name, pattern) for pattern in quirks.patch_grammar_models
        )
        self._cache = EncodingCache(self._encode_message, self._encode_tool, JSON_FORM)

    def encode(self, request: ModelRequest) -> bytes:
        """Return the JSON body: options and tools first,
        then the system prompt and the items of each message.
        """
        head = encode_json(self._make_head(request))
        system = (
            [encode_json({"role": self._quirks.system_role, "content": request.system})]
            if request.system
            else []
        )
        messages, _ = self._cache.encode_messages(request)
        items = b",".join(filter(None, (*system, messages)))
        return b"".join((head[:-1], b',"input":[', items, b"]}"))

    def _make_head(self, request: ModelRequest) -> JSON:
        """Return the fields of the body that come before the messages."""
        info, quirks = self._info, self._quirks
        head: JSON = {"model": info.api_id or info.id, "stream": True, "store": False}
        if info.reasoning:
            # The service stores nothing, so its thinking comes encrypted and is sent
            # back with later requests.
            head["include"] = ["reasoning.encrypted_content"]
        if request.max_tokens is not None:
            head["max_output_tokens"] = request.max_tokens
        if request.temperature is not None and info.temperature:
            head["temperature"] = request.temperature
        if request.top_p is not None:
            head["top_p"] = request.top_p
        if quirks.session_field and request.session_id:
            head[quirks.session_field] = request.session_id
        if request.tools and quirks.parallel_tool_calls is not None:
            head["parallel_tool_calls"] = quirks.parallel_tool_calls
        if info.reasoning and quirks.reasoning_summary:
            head["reasoning"] = {"summary": quirks.reasoning_summary}
        for name, value in collect_options(info, request, quirks).items():
            _put_option(head, name, value)
        if request.tools:
            head["tools"] = self._cache.encode_tools(request.tools)
        return _translate_chat_fields(
            merge_body(
                {name: value for name, value in head.items() if value is not None}, request, quirks
            )
        )

    def _encode_tool(self, spec: ToolSpec) -> JSON:
        if spec.name == PATCH_TOOL and self._accepts_patches:
            return encode_patch_tool(spec)
        parameters = adapt_parameters(
            spec.parameters, self._quirks.refused_keywords, self._quirks.schema_dialect
        )
        encoded_tool = {
            "type": "function",
            "name": spec.name,
            "description": spec.description,
            "parameters": parameters,
        }
        # The default is true, which requires every parameter and refuses many keywords.
        is_loose = STRICT_FEATURE not in self._quirks.omitted
        return {**encoded_tool, "strict": False} if is_loose else encoded_tool

    def _encode_message(self, message: ModelMessage) -> bytes:
        """Return the items of one message as JSON, comma-separated;
        b"" for a message without any item.
        """
        match message:
            case UserModelMessage(content=content):
                items = [
                    {
                        "role": "user",
                        "content": [self._encode_user_piece(piece) for piece in content],
                    }
                ]
            case ToolModelMessage(content=content):
                items = [self._encode_result(piece) for piece in content]
            case AssistantModelMessage():
                items = list(self._encode_assistant(message))
        return b",".join(map(encode_json, items))

    def _encode_user_piece(self, piece: TextPiece | ImagePiece) -> JSON:
        if isinstance(piece, TextPiece):
            return {"type": "input_text", "text": piece.text}
        name = piece.filename or "file"
        if not accepts_attachment(self._info, self._quirks, piece.mime):
            return {
                "type": "input_text",
                "text": f"[{name} ({piece.mime}) left out: this model can't read it]",
            }
        url = f"data:{piece.mime};base64,{piece.data}"
        if piece.mime == "application/pdf":
            return {"type": "input_file", "filename": name, "file_data": url}
        return {"type": "input_image", "image_url": url, "detail": "auto"}

    def _encode_assistant(self, message: AssistantModelMessage) -> Iterator[JSON]:
        """Yield the items of an answer. Thoughts are only sent to the model that had them,
        never as the last item.
        """
        is_same_model = message.origin == self._info.ref
        sends_thoughts = is_same_model and THINKING_FEATURE not in self._quirks.omitted
        thoughts: list[JSON] = []
        for piece in message.content:
            match piece:
                case ReasoningPiece():
                    if sends_thoughts and (thought := self._encode_thought(piece)) is not None:
                        thoughts.append(thought)
                    continue
                case TextPiece():
                    item = self._encode_text(piece, is_same_model=is_same_model)
                case CallPiece():
                    item = self._encode_call(piece)
            # Held back until the item that they led to: the service refuses thoughts without one.
            yield from thoughts
            thoughts = []
            yield item

    def _encode_thought(self, piece: ReasoningPiece) -> JSON | None:
        """Return an earlier thought as a reasoning item; None for one without encrypted content.

        Such an item would refer to the service's storage,
        and nothing is stored there (`store` is false).
        """
        match piece.metadata.get(METADATA_KEY):
            case {"id": str(name), "encrypted_content": str(content)} if content:
                summary = [{"type": "summary_text", "text": piece.text}] if piece.text else []
                return {
                    "type": "reasoning",
                    "id": name,
                    "summary": summary,
                    "encrypted_content": content,
                }
            case _:
                return None

    def _encode_text(self, piece: TextPiece, *, is_same_model: bool) -> JSON:
        item: JSON = {"type": "message", "role": "assistant"}
        item["content"] = [{"type": "output_text", "text": piece.text}]
        match piece.metadata.get(METADATA_KEY):
            case {"phase": str(phase)} if (
                is_same_model and PHASE_FEATURE not in self._quirks.omitted
            ):
                item["phase"] = phase
            case _:
                pass
        return item

    def _encode_call(self, piece: CallPiece) -> JSON:
        name, call_id = sanitize_tool_name(piece.name), _encode_call_id(piece.id)
        patch = self._extract_patch(piece)
        if patch is not None:
            return {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": patch}
        return {
            "type": "function_call",
            "call_id": call_id,
            "name": name,
            "arguments": piece.arguments,
        }

    def _encode_result(self, piece: ResultPiece) -> JSON:
        is_patch = piece.name == PATCH_TOOL and self._accepts_patches
        kind = "custom_tool_call_output" if is_patch else "function_call_output"
        return {"type": kind, "call_id": _encode_call_id(piece.call_id), "output": piece.output}

    def _extract_patch(self, piece: CallPiece) -> str | None:
        """Return the patch of a call that is sent as free-form text;
        None: the call is sent with JSON arguments.
        """
        if piece.name != PATCH_TOOL or not self._accepts_patches:
            return None
        arguments: Any = msgspec.json.decode(piece.arguments)
        patch = arguments.get(PATCH_ARGUMENT, "") if is_object(arguments) else ""
        return patch if isinstance(patch, str) else ""


def _put_option(head: JSON, name: str, value: Any) -> None:
    """Set an option in the field that this protocol has for it; objects are merged."""
    group, field = NESTED_OPTIONS.get(name, ("", name))
    if group:
        head[group] = {**head.get(group, {}), field: value}
    elif is_object(value) and is_object(head.get(field)):
        head[field] = {**head[field], **value}
    else:
        head[field] = value


def _translate_chat_fields(head: JSON) -> JSON:
    """Move `response_format` and `tool_choice` of chat completions to their
    fields in this protocol.
    """
    match head.get("response_format"):
        case {"type": "json_schema", "json_schema": {} as schema}:
            head["text"] = {**head.get("text", {}), "format": {"type": "json_schema", **schema}}
            del head["response_format"]
        case _:
            pass
    match head.get("tool_choice"):
        case {"type": "function", "function": {"name": str(name)}}:
            head["tool_choice"] = {"type": "function", "name": name}
        case _:
            pass
    return head


def _encode_call_id(call_id: str) -> str:
    # An id of another service may be too long: then all of it is hashed.
    return sanitize_call_id(call_id, MAX_CALL_ID_LENGTH if len(call_id) > MAX_CALL_ID_LENGTH else 0)
