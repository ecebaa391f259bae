"""Anthropic's messages as the service writes them, and its refusals in its own words;
also Claude on Vertex AI.
"""

import json
from collections.abc import Iterator
from typing import Any

from bench.protocols.encoding import dump_json, split_arguments
from tests.support.answers import Answer, Counts

Message = dict[str, Any]
MAX_CACHE_MARKS = 4
VERTEX_VERSION = "vertex-2023-10-16"


def stream_events(answer: Answer, model: str) -> Iterator[bytes]:
    """Yield the server-sent events of a message."""
    end = answer.line_end

    def event(kind: str, **fields: Any) -> bytes:
        return f"event: {kind}{end}data: {dump_json({'type': kind, **fields})}{end}{end}".encode()

    if answer.events is not None:
        for data in answer.events:
            kind = str(json.loads(data).get("type", "")) if data.startswith("{") else ""
            yield f"event: {kind}{end}data: {data}{end}{end}".encode()
        return
    counts = answer.counts or Counts(0, 0)
    usage = {
        "input_tokens": counts.input - counts.cached - counts.written,
        "cache_creation_input_tokens": counts.written,
        "cache_read_input_tokens": counts.cached,
        "output_tokens": 1 if answer.counts else 0,
    }
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
    }
    yield event(
        "message_start",
        message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage},
    )
    yield event("ping")
    for index, (block, deltas) in enumerate(_list_blocks(answer)):
        yield event("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    if answer.finish is not None:
        reason = answer.finish or ("tool_use" if answer.calls else "end_turn")
        delta = {"stop_reason": reason, "stop_sequence": None}
        yield event("message_delta", delta=delta, usage={"output_tokens": counts.output})
        yield event("message_stop")


def _list_blocks(answer: Answer) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield each content block as it starts, and its deltas."""
    if answer.reasoning or answer.signature:
        deltas: list[dict[str, Any]] = [{"type": "thinking_delta", "thinking": answer.reasoning}]
        deltas.append({"type": "signature_delta", "signature": answer.signature})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if answer.redacted:
        yield {"type": "redacted_thinking", "data": answer.redacted}, []
    if answer.text:
        yield (
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": word} for word in answer.words()],
        )
    for call in answer.calls:
        # The service begins each call with an empty piece.
        pieces = ("", *split_arguments(call.arguments))
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, deltas


def make_response(answer: Answer, model: str) -> bytes:
    """Return a message that does not stream."""
    content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    content += [
        {
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": json.loads(call.arguments or "{}"),
        }
        for call in answer.calls
    ]
    counts = answer.counts or Counts()
    usage = {"input_tokens": counts.input - counts.cached, "cache_read_input_tokens": counts.cached}
    usage["output_tokens"] = counts.output
    reason = "tool_use" if answer.calls else "end_turn"
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
    }
    return dump_json({**message, "stop_reason": reason, "usage": usage}).encode()


def make_error(kind: str, message: str) -> bytes:
    """Return the body of an error."""
    error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return dump_json(error).encode()


def check_request(path: str, body: bytes) -> str | None:
    """Return the reason for which the service would answer 400, None if it would not."""
    del path
    try:
        request: dict[str, Any] = json.loads(body)
    except ValueError:
        return "We could not parse the JSON body of your request."
    if not request.get("model"):
        return "model: field required"
    return _check_fields(request)


def check_vertex_request(path: str, body: bytes) -> str | None:
    """Check a request to Claude on Vertex AI, which has the model in the path and
    the version in the body.
    """
    try:
        request: dict[str, Any] = json.loads(body)
    except ValueError:
        return "Request contains an invalid argument."
    if request.get("anthropic_version") != VERTEX_VERSION:
        return "anthropic_version: Field required"
    if "model" in request:
        return "model: Extra inputs are not permitted"
    if "/publishers/anthropic/models/" not in path:
        return f"no publisher in {path}"
    return _check_fields(request)


def _check_fields(request: dict[str, Any]) -> str | None:
    """Check everything but the model's name, which one of the two services has in the path."""
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages: at least one message is required"
    if not isinstance(request.get("max_tokens"), int) or request["max_tokens"] < 1:
        return "max_tokens: field required"
    if json.dumps(request).count('"cache_control"') > MAX_CACHE_MARKS:
        return f"A maximum of {MAX_CACHE_MARKS} blocks with cache_control may be provided."
    return _check_messages(request["messages"])


def _check_messages(messages: list[Message]) -> str | None:
    """Check roles, blocks, and the pairing of tool_use and tool_result."""
    if messages[0].get("role") != "user":
        return 'messages: first message must use the "user" role'
    expected: list[str] = []
    before = ""
    for index, message in enumerate(messages):
        blocks = message.get("content")
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        if not blocks:
            return f"messages.{index}: all messages must have non-empty content"
        if message.get("role") == before:
            return f"messages.{index}: roles must alternate"
        before = message.get("role", "")
        if (reason := _check_blocks(index, blocks)) is not None:
            return reason
        results = [
            block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"
        ]
        if missing := [each for each in expected if each not in results]:
            ids = ", ".join(missing)
            return f"messages.{index}: `tool_use` ids were found without `tool_result` blocks after: {ids}"
        if extra := [each for each in results if each not in expected]:
            ids = ", ".join(map(str, extra))
            return (
                f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {ids}"
            )
        expected = [block["id"] for block in blocks if block.get("type") == "tool_use"]
        if len(set(expected)) != len(expected):
            return f"messages.{index}: `tool_use` ids must be unique"
    return "`tool_use` ids were found without `tool_result` blocks after" if expected else None


def _check_blocks(index: int, blocks: list[Message]) -> str | None:
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)} if not text.strip():
                return f"messages.{index}: text content blocks must contain non-whitespace text"
            case {"type": "thinking"} if not block.get("signature"):
                return f"messages.{index}: thinking.signature: field required"
            case {"type": "tool_use", "input": arguments} if not isinstance(arguments, dict):
                return f"messages.{index}: tool_use.input: must be an object"
            case _:
                continue
    return None
