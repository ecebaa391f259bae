"""A request in Anthropic's messages form. Equal turns give equal bytes; only the cache marks move on."""

from typing import Any, NamedTuple

import msgspec

from codeloop.model.chat import (
    AssistantTurn,
    CallPiece,
    ImagePiece,
    ModelInfo,
    ModelRequest,
    ReasoningPiece,
    ResultPiece,
    TextPiece,
    ToolSpec,
    ToolTurn,
    Turn,
    UserTurn,
)
from codeloop.model.quirks import Quirks, reads
from codeloop.model.wire.encoding import EncodingCache, call_id, options_of, to_json, tool_name, with_body
from codeloop.model.wire.tool_calls import is_object
from codeloop.model.wire.tool_schema import parameters_of
from codeloop.schema.limits import MODEL_OUTPUT
from codeloop.schema.wire import JSON

METADATA = "anthropic"
"""The key of ReasoningPiece.metadata: {"signature": text} of a thought, or {"redacted": data}."""
MARK = b',"cache_control":{"type":"ephemeral"}}'
MARKED_MESSAGES = 2
THOUGHTS = (b'{"type":"thinking"', b'{"type":"redacted_thinking"')


class AnthropicBody:
    """Writes the bodies of requests to one model."""

    def __init__(self, info: ModelInfo, quirks: Quirks) -> None:
        self._info = info
        self._quirks = quirks
        self._cache: EncodingCache[Written] = EncodingCache(self._written, self._tool)

    def encode(self, request: ModelRequest) -> bytes:
        """Return the JSON body: options, system prompt and tools first; turns of one side in a row are one message."""
        messages: list[Written] = []
        for turn in self._cache.turns(request):
            if not turn.blocks:
                continue
            if messages and messages[-1].role == turn.role:
                messages[-1] = written(turn.role, messages[-1].blocks + turn.blocks)
            else:
                messages.append(turn)
        if self._quirks.cache_marks:
            last = messages[-MARKED_MESSAGES:]
            messages[-MARKED_MESSAGES:] = [written(message.role, _marked(message.blocks)) for message in last]
        bodies = b",".join([message.body for message in messages])
        head = to_json(self._head(request))
        return b"".join((head[:-1], b',"messages":[', bodies, b"]}"))

    def _head(self, request: ModelRequest) -> JSON:
        info = self._info
        ceiling = MODEL_OUTPUT.value
        longest = request.max_tokens or min(info.limits.output or ceiling, ceiling)
        head: JSON = {"model": info.api_id or info.id, "max_tokens": longest, "stream": True}
        options = options_of(info, request, self._quirks)
        thinking: Any = options.get("thinking")
        match thinking:
            case {"type": "enabled", "budget_tokens": int(budget)} if budget > longest // 2:
                whole, most = budget + longest, info.limits.output  # the answer needs room beside it
                head["max_tokens"] = min(whole, most) if most > budget else whole
            case {"type": "enabled" | "adaptive"}:
                pass
            case _:
                if request.temperature is not None and info.temperature:
                    head["temperature"] = request.temperature
                if request.top_p is not None:
                    head["top_p"] = request.top_p
        head.update(options)
        head = with_body({name: value for name, value in head.items() if value is not None}, request)
        mark: JSON = {"cache_control": {"type": "ephemeral"}} if self._quirks.cache_marks else {}
        if request.tools:
            *tools, last = self._cache.tools(request.tools)
            head["tools"] = [*tools, {**last, **mark}]
        if request.system:
            head["system"] = [{"type": "text", "text": request.system, **mark}]
        return head

    def _tool(self, spec: ToolSpec) -> JSON:
        schema = parameters_of(spec.parameters, self._quirks.refused_keywords)
        return {"name": spec.name, "description": spec.description, "input_schema": schema}

    def _written(self, turn: Turn) -> "Written":
        return written("assistant" if isinstance(turn, AssistantTurn) else "user", self._blocks(turn))

    def _blocks(self, turn: Turn) -> list[bytes]:
        """Return the content blocks of one turn, each as JSON; none when nothing of it can be sent."""
        match turn:
            case UserTurn(content=content):
                blocks = [self._user(piece) for piece in content]
            case ToolTurn(content=content):
                blocks = [_result(piece) for piece in content]
            case AssistantTurn(content=content, origin=origin):
                blocks = [_assistant(piece, own=origin == self._info.ref) for piece in content]
                if all(block is None or "thinking" in block for block in blocks):
                    return []
        return [to_json(block) for block in blocks if block is not None]

    def _user(self, piece: TextPiece | ImagePiece) -> JSON | None:
        if isinstance(piece, TextPiece):
            return _text(piece.text)
        name = piece.filename or "file"
        if not reads(self._info, self._quirks, piece.mime):
            return _text(f"[{name} ({piece.mime}) left out: this model can't read it]")
        source = {"type": "base64", "media_type": piece.mime, "data": piece.data}
        if piece.mime == "application/pdf":
            return {"type": "document", "source": source, "title": name}
        return {"type": "image", "source": source}


class Written(NamedTuple):
    """A message: its role, the JSON of each block, and of the whole."""

    role: str
    blocks: list[bytes]
    body: bytes


def written(role: str, blocks: list[bytes]) -> Written:
    """Put the blocks together."""
    return Written(role, blocks, b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks)))


def _assistant(piece: TextPiece | ReasoningPiece | CallPiece, *, own: bool) -> JSON | None:
    match piece:
        case TextPiece():
            return _text(piece.text)
        case CallPiece():
            arguments = msgspec.Raw(piece.arguments.encode() if is_object(piece.arguments) else b"{}")
            return {"type": "tool_use", "id": call_id(piece.id), "name": tool_name(piece.name), "input": arguments}
        case ReasoningPiece():
            return _thought(piece) if own else None


def _thought(piece: ReasoningPiece) -> JSON | None:
    """Return thinking as the model made it; without its signature it would be refused."""
    match piece.metadata.get(METADATA):
        case {"redacted": str(data)}:
            return {"type": "redacted_thinking", "data": data}
        case {"signature": str(signature)} if signature:
            return {"type": "thinking", "thinking": piece.text, "signature": signature}
        case _:
            return None


def _result(piece: ResultPiece) -> JSON:
    block: JSON = {"type": "tool_result", "tool_use_id": call_id(piece.call_id)}
    if piece.output:
        block["content"] = piece.output
    if piece.error:
        block["is_error"] = True
    return block


def _text(text: str) -> JSON | None:
    """Return a text block; blank ones are refused by the service."""
    return {"type": "text", "text": text} if text.strip() else None


def _marked(blocks: list[bytes]) -> list[bytes]:
    """Put the cache mark on the last block that may carry one."""
    for at in range(len(blocks) - 1, -1, -1):
        if not blocks[at].startswith(THOUGHTS):
            return [*blocks[:at], blocks[at][:-1] + MARK, *blocks[at + 1 :]]
    return blocks
