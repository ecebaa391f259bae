"""Encodes requests to OpenAI's chat completions API and the many services like it.

Equal messages give equal bytes, and the fields that never change come first: caches of services and
local servers compare from the first byte on.
"""

from typing import Any

import msgspec

from codeloop.kit.growing_sum import GrowingSum
from codeloop.kit.wildcard import matches
from codeloop.model.chat import (
    AssistantModelMessage,
    CallPiece,
    ImagePiece,
    ModelInfo,
    ModelMessage,
    ModelRequest,
    ReasoningPiece,
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
    sanitize_call_id,
    sanitize_tool_name,
)
from codeloop.model.wire.tool_schema import adapt_parameters
from codeloop.schema.limits import MODEL_OUTPUT_TOKENS
from codeloop.schema.wire import JSON, encode_json

METADATA_KEY = "openai"
"""The key of ReasoningPiece.metadata: {"reasoning_details": [...]},
which must go back unchanged (OpenRouter).
"""

ASSISTANT_MESSAGE_START = b'{"role":"assistant"'
"""The beginning of every encoded message of the model."""
MARKED_MESSAGE_COUNT = 2
"""Messages at the end that get a cache mark, for Claude through a gateway,
as in `anthropic/request.py`.
"""
SEARCHED_FOR_MARKS = 8
"""Messages at the end among which those to mark are: a prompt or results
follow nearly every answer.
"""
LIMIT_FIELDS = frozenset({"max_tokens", "max_completion_tokens"})
"""Fields that limit the length of an answer; services refuse both in one request."""
BYTES_PER_TOKEN = 3
"""Fewer than usual, so that a request is rather overestimated: it is refused if the
limit does not fit next to it.
"""
MIN_ANSWER_TOKENS = 1_024
"""A limit below that would only cut the answer."""


class ChatCompletionsRequestEncoder:
    """Encodes the bodies of requests to one model."""

    def __init__(self, info: ModelInfo, quirks: Quirks) -> None:
        self._info = info
        self._quirks = quirks
        name = (info.api_id or info.id).lower()
        self._needs_cache_marks = any(
            matches(name, pattern) for pattern in quirks.cache_marked_models
        )
        open_count = SEARCHED_FOR_MARKS if self._needs_cache_marks else 0
        self._cache = EncodingCache(self._encode_message, self._encode_tool, JSON_FORM, open_count)
        self._image_bytes = GrowingSum(_count_image_bytes)

    def encode(self, request: ModelRequest) -> bytes:
        """Return the JSON body: options, tools and system prompt first, then the messages."""
        system = (
            [encode_json({"role": self._quirks.system_role, "content": request.system})]
            if request.system
            else []
        )
        earlier, last = self._cache.encode_messages(request)
        if self._needs_cache_marks:
            system, last = [_add_cache_mark(message) for message in system], _add_cache_marks(last)
        body = b",".join(filter(None, (*system, earlier, *last)))
        head = encode_json(self._make_head(request, self._choose_limit(request, len(body))))
        return b"".join((head[:-1], b',"messages":[', body, b"]}"))

    def _choose_limit(self, request: ModelRequest, message_bytes: int) -> int | None:
        """Return the maximum of tokens for the answer; None: the service decides.

        A limit is sent if the user or the configuration sets one,
        and to services that cut answers short without one.
        `message_bytes`: the length of the encoded messages.
        """
        if request.max_tokens:
            return request.max_tokens
        limits, limit = self._info.limits, self._info.answer_limit
        if not limit and self._quirks.truncates_answers:
            limit = min(limits.output or MODEL_OUTPUT_TOKENS.value, MODEL_OUTPUT_TOKENS.value)
        if not limit or not limits.context:
            return limit or None
        # The base64 of an image is not text: its length says nothing about its tokens.
        image_bytes = self._image_bytes.update(request.messages)
        request_bytes = message_bytes + len(encode_json(self._cache.encode_tools(request.tools)))
        room = limits.context - (request_bytes - image_bytes) // BYTES_PER_TOKEN
        return min(limit, room) if room >= MIN_ANSWER_TOKENS else None

    def _make_head(self, request: ModelRequest, limit: int | None) -> JSON:
        """Return the fields of the body that come before the messages.
        `limit`: the most tokens of the answer.
        """
        quirks = self._quirks
        head: JSON = {"model": self._info.api_id or self._info.id, "stream": True}
        # Without it a stream ends without token counts.
        head["stream_options"] = {"include_usage": True}
        options = collect_options(self._info, request, quirks)
        if limit is not None and LIMIT_FIELDS.isdisjoint(options):
            head[quirks.max_tokens_field] = limit
        if request.temperature is not None and self._info.temperature and quirks.accepts_sampling:
            head["temperature"] = request.temperature
        if request.top_p is not None and quirks.accepts_sampling:
            head["top_p"] = request.top_p
        if quirks.session_field and request.session_id:
            head[quirks.session_field] = request.session_id
        if request.tools and quirks.parallel_tool_calls is not None:
            head["parallel_tool_calls"] = quirks.parallel_tool_calls
        head.update(options)
        head = merge_body(
            {name: value for name, value in head.items() if value is not None}, request, quirks
        )
        if request.tools:
            head["tools"] = self._cache.encode_tools(request.tools)
        return head

    def _encode_tool(self, spec: ToolSpec) -> JSON:
        parameters = adapt_parameters(
            spec.parameters, self._quirks.refused_keywords, self._quirks.schema_dialect
        )
        function = {"name": spec.name, "description": spec.description, "parameters": parameters}
        return {"type": "function", "function": function}

    def _encode_message(self, message: ModelMessage) -> bytes:
        """Return the wire's messages for one of ours, comma-separated;
        b"" when nothing of it can be sent.
        """
        match message:
            case UserModelMessage(content=content):
                return encode_json({"role": "user", "content": self._encode_user_content(content)})
            case ToolModelMessage(content=content):
                results = (
                    {
                        "role": "tool",
                        "tool_call_id": self._encode_call_id(piece.call_id),
                        "content": piece.output,
                    }
                    for piece in content
                )
                return b",".join(map(encode_json, results))
            case AssistantModelMessage():
                answer = self._encode_assistant(message)
                return encode_json(answer) if answer else b""

    def _encode_user_content(self, content: tuple[TextPiece | ImagePiece, ...]) -> str | list[JSON]:
        # A plain string is what every service accepts; some local servers know no lists of parts.
        if len(content) == 1 and isinstance(content[0], TextPiece):
            return content[0].text
        return [self._encode_user_piece(piece) for piece in content]

    def _encode_user_piece(self, piece: TextPiece | ImagePiece) -> JSON:
        if isinstance(piece, TextPiece):
            return {"type": "text", "text": piece.text}
        name = piece.filename or "file"
        if not accepts_attachment(self._info, self._quirks, piece.mime):
            return {
                "type": "text",
                "text": f"[{name} ({piece.mime}) left out: this model can't read it]",
            }
        url = f"data:{piece.mime};base64,{piece.data}"
        if piece.mime == "application/pdf":
            return {"type": "file", "file": {"filename": name, "file_data": url}}
        return {"type": "image_url", "image_url": {"url": url}}

    def _encode_assistant(self, message: AssistantModelMessage) -> JSON | None:
        text = "".join(piece.text for piece in message.content if isinstance(piece, TextPiece))
        calls = [piece for piece in message.content if isinstance(piece, CallPiece)]
        if not text and not calls:
            return None
        # OpenAI's form of an answer that consists of calls alone has the content `null`.
        answer: JSON = {"role": "assistant", "content": text or None}
        thoughts = [piece for piece in message.content if isinstance(piece, ReasoningPiece)]
        answer.update(
            self._encode_reasoning(thoughts, is_same_model=message.origin == self._info.ref)
        )
        if calls:
            answer["tool_calls"] = [
                {
                    "id": self._encode_call_id(piece.id),
                    "type": "function",
                    "function": {
                        "name": sanitize_tool_name(piece.name),
                        "arguments": piece.arguments,
                    },
                }
                for piece in calls
            ]
        return answer

    def _encode_reasoning(self, thoughts: list[ReasoningPiece], *, is_same_model: bool) -> JSON:
        """Return thinking in the field that the model expects;
        signed details only go to the model that made them.
        """
        field = self._info.reasoning_field or self._quirks.reasoning_field
        # Signed or encrypted details are refused by other models.
        details = (
            [item for piece in thoughts for item in _list_reasoning_details(piece)]
            if is_same_model
            else []
        )
        fields: JSON = {"reasoning_details": details} if details else {}
        if field and field != "reasoning_details":
            fields[field] = "\n".join(piece.text for piece in thoughts if piece.text)
        return fields

    def _encode_call_id(self, call_id: str) -> str:
        length = self._quirks.call_id_length
        return sanitize_call_id(call_id, length) if length else call_id


def _count_image_bytes(message: ModelMessage) -> int:
    return sum(len(each.data) for each in message.content if isinstance(each, ImagePiece))


def _add_cache_marks(messages: list[bytes]) -> list[bytes]:
    """Mark the last prompts or results, up to which the service then caches the request."""
    prompts = [
        index
        for index, message in enumerate(messages)
        if not message.startswith(ASSISTANT_MESSAGE_START)
    ]
    marked = set(prompts[-MARKED_MESSAGE_COUNT:])
    return [
        _add_cache_mark(message) if index in marked else message
        for index, message in enumerate(messages)
    ]


def _add_cache_mark(messages: bytes) -> bytes:
    """Put the mark on the last part of the last of the wire's messages for one of ours."""
    *before, last = msgspec.json.decode(b"[%b]" % messages, type=list[JSON])
    content: Any = last["content"]
    parts: list[JSON] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not parts or not parts[-1].get("text", " "):
        # The service refuses a mark on an empty text.
        return messages
    parts[-1] = {**parts[-1], "cache_control": {"type": "ephemeral"}}
    return b",".join(map(encode_json, [*before, {**last, "content": parts}]))


def _list_reasoning_details(piece: ReasoningPiece) -> list[Any]:
    match piece.metadata.get(METADATA_KEY):
        case {"reasoning_details": [*details]}:
            return details
        case _:
            return []
