"""The two protocols as the real services write them: the events of an answer, errors, lists of models."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from tests.support.answers import Answer, Counts

CREATED = 1_760_000_000


def dump(value: Any) -> str:
    """Return compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def openai_events(answer: Answer, model: str) -> Iterator[bytes]:
    """Yield the server-sent events of a chat completion."""
    end = answer.line_end
    if answer.events is not None:
        yield from (f"data: {data}{end}{end}".encode() for data in answer.events)
        return
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": CREATED, "model": model}

    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return f"data: {dump({**head, 'choices': [choice], 'usage': None})}{end}{end}".encode()

    yield event({"role": "assistant", "content": ""})
    if answer.reasoning:
        yield event({"reasoning_content": answer.reasoning})
    for word in answer.words():
        yield event({"content": word})
    for index, call in enumerate(answer.calls):
        function: dict[str, Any] = {"name": call.name, "arguments": "" if call.arguments is not None else None}
        yield event({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
        for start in range(0, len(call.arguments or ""), 16):
            piece = {"arguments": (call.arguments or "")[start : start + 16]}
            yield event({"tool_calls": [{"index": index, "function": piece}]})
    if answer.finish is not None:
        yield event({}, answer.finish or ("tool_calls" if answer.calls else "stop"))
        if answer.counts is not None:
            yield f"data: {dump({**head, 'choices': [], 'usage': openai_usage(answer.counts)})}{end}{end}".encode()
        yield f"data: [DONE]{end}{end}".encode()


def openai_usage(counts: Counts) -> dict[str, Any]:
    """Return OpenAI's usage object."""
    return {
        "prompt_tokens": counts.input,
        "completion_tokens": counts.output,
        "total_tokens": counts.input + counts.output,
        "prompt_tokens_details": {"cached_tokens": counts.cached},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning},
    }


def openai_whole(answer: Answer, model: str) -> bytes:
    """Return a chat completion that does not stream."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in answer.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if answer.calls else "stop"}
    usage = openai_usage(answer.counts or Counts())
    return dump({"id": "1", "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}).encode()


def anthropic_events(answer: Answer, model: str) -> Iterator[bytes]:
    """Yield the server-sent events of a message."""
    end = answer.line_end

    def event(kind: str, **fields: Any) -> bytes:
        return f"event: {kind}{end}data: {dump({'type': kind, **fields})}{end}{end}".encode()

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
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    yield event("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage})
    yield event("ping")
    for index, (block, deltas) in enumerate(anthropic_blocks(answer)):
        yield event("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    if answer.finish is not None:
        reason = answer.finish or ("tool_use" if answer.calls else "end_turn")
        delta = {"stop_reason": reason, "stop_sequence": None}
        yield event("message_delta", delta=delta, usage={"output_tokens": counts.output})
        yield event("message_stop")


def anthropic_blocks(answer: Answer) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield each content block as it starts, and its deltas."""
    if answer.reasoning or answer.signature:
        deltas: list[dict[str, Any]] = [{"type": "thinking_delta", "thinking": answer.reasoning}]
        deltas.append({"type": "signature_delta", "signature": answer.signature})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if answer.redacted:
        yield {"type": "redacted_thinking", "data": answer.redacted}, []
    if answer.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": word} for word in answer.words()]
    for call in answer.calls:
        text = call.arguments or ""
        pieces = [text[start : start + 16] for start in range(0, len(text), 16)]
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces)]
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, deltas


def anthropic_whole(answer: Answer, model: str) -> bytes:
    """Return a message that does not stream."""
    content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments or "{}")}
        for call in answer.calls
    ]
    counts = answer.counts or Counts()
    usage = {"input_tokens": counts.input - counts.cached, "cache_read_input_tokens": counts.cached}
    usage["output_tokens"] = counts.output
    reason = "tool_use" if answer.calls else "end_turn"
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content}
    return dump({**message, "stop_reason": reason, "usage": usage}).encode()


def error_body(path: str, kind: str, message: str) -> bytes:
    """Return an error as the service of the path words it."""
    if path.endswith("/messages"):
        return dump({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}).encode()
    return dump({"error": {"message": message, "type": kind, "param": None, "code": None}}).encode()


def models_body(names: Iterable[str]) -> bytes:
    """Return the list of models, a form that clients of both protocols read."""
    common = {"object": "model", "type": "model", "display_name": "Bench", "created": CREATED}
    return dump({"object": "list", "data": [{"id": name, **common} for name in names], "has_more": False}).encode()
