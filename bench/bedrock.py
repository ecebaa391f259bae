"""Bedrock's Converse as the service writes it: binary messages with checksums; and what it refuses in its own words."""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any
from zlib import crc32

from bench.protocols import dump
from tests.support.answers import Answer, Counts

Block = dict[str, Any]
FIELDS = frozenset(
    {"messages", "system", "inferenceConfig", "toolConfig", "guardrailConfig", "additionalModelRequestFields"}
    | {"promptVariables", "additionalModelResponseFieldPaths", "requestMetadata", "performanceConfig", "serviceTier"}
    | {"outputConfig"}
)
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
DOCUMENT = re.compile(r"(?!.*\s\s)[A-Za-z0-9\s\-()\[\]]{1,200}")
IMAGES = {"png": b"\x89PNG", "jpeg": b"\xff\xd8", "gif": b"GIF8", "webp": b"RIFF"}


def message(headers: dict[str, str], payload: bytes) -> bytes:
    """Return one message of the event stream."""
    packed = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + len(value.encode()).to_bytes(2, "big") + value.encode()
        for name, value in headers.items()
    )
    start = (16 + len(packed) + len(payload)).to_bytes(4, "big") + len(packed).to_bytes(4, "big")
    start += crc32(start).to_bytes(4, "big")
    data = start + packed + payload
    return data + crc32(data).to_bytes(4, "big")


def event(kind: str, **fields: Any) -> bytes:
    """Return an event, padded as the service does."""
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return message(headers, dump({**fields, "p": "abcdefghij"}).encode())


def exception(kind: str, text: str) -> bytes:
    """Return an exception inside the stream."""
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return message(headers, dump({"message": text}).encode())


def events(answer: Answer, model: str) -> Iterator[bytes]:
    """Yield the messages of an answer. Given events are `{"name": {...}}`; `{"exception": {...}}` is one."""
    del model
    if answer.events is not None:
        for data in answer.events:
            ((kind, fields),) = json.loads(data).items()
            is_exception = kind == "exception"
            yield exception(fields["type"], fields["message"]) if is_exception else event(kind, **fields)
        return
    yield event("messageStart", role="assistant")
    for index, (start, deltas) in enumerate(_blocks(answer)):
        if start is not None:
            yield event("contentBlockStart", contentBlockIndex=index, start=start)
        for delta in deltas:
            yield event("contentBlockDelta", contentBlockIndex=index, delta=delta)
        yield event("contentBlockStop", contentBlockIndex=index)
    if answer.finish is not None:
        yield event("messageStop", stopReason=answer.finish or ("tool_use" if answer.calls else "end_turn"))
        if answer.counts is not None:
            yield event("metadata", usage=usage(answer.counts), metrics={"latencyMs": 1})


def _blocks(answer: Answer) -> Iterator[tuple[Block | None, list[Block]]]:
    if answer.reasoning or answer.signature:
        deltas: list[Block] = [{"reasoningContent": {"text": answer.reasoning}}] if answer.reasoning else []
        yield None, [*deltas, {"reasoningContent": {"signature": answer.signature}}]
    if answer.redacted:
        yield None, [{"reasoningContent": {"redactedContent": answer.redacted}}]
    if answer.text:
        yield None, [{"text": word} for word in answer.words()]
    for call in answer.calls:
        text = call.arguments or ""
        pieces = [text[start : start + 16] for start in range(0, len(text), 16)]
        yield {"toolUse": {"toolUseId": call.id, "name": call.name}}, [{"toolUse": {"input": each}} for each in pieces]


def usage(counts: Counts) -> dict[str, int]:
    """Return a `usage` object: its input excludes cached tokens."""
    return {
        "inputTokens": counts.input - counts.cached - counts.written,
        "outputTokens": counts.output,
        "totalTokens": counts.input + counts.output,
        "cacheReadInputTokens": counts.cached,
        "cacheWriteInputTokens": counts.written,
    }


def whole(answer: Answer, model: str) -> bytes:
    """Return an answer that does not stream."""
    del model
    content: list[Block] = [{"text": answer.text}] if answer.text else []
    content += [
        {"toolUse": {"toolUseId": call.id, "name": call.name, "input": json.loads(call.arguments or "{}")}}
        for call in answer.calls
    ]
    reason = "tool_use" if answer.calls else "end_turn"
    output = {"message": {"role": "assistant", "content": content}}
    return dump({"output": output, "stopReason": reason, "usage": usage(answer.counts or Counts())}).encode()


def error(kind: str, text: str) -> bytes:
    """Return an error's body; its kind is in a header of the real service."""
    del kind
    return dump({"message": text}).encode()


def complaint(path: str, body: bytes) -> str | None:
    """Say why the service would answer 400; None when it would not."""
    try:
        request: dict[str, Any] = json.loads(body)
    except ValueError:
        return "The request is not valid JSON"
    if unknown := request.keys() - FIELDS:
        return f"1 validation error detected: {min(unknown)} is no field"
    if len(path.partition("?")[0].split("/")) != 4:
        return "The provided model identifier is invalid."
    messages: list[Block] = request.get("messages") or []
    text = json.dumps(request)
    if text.count('"cachePoint"') > 4:
        return "At most 4 cache points are allowed."
    if '"cachePoint"' in text and "claude" not in path and "nova" not in path:
        return "You invoked an unsupported model or your request did not allow prompt caching."
    if "toolUse" in text and not request.get("toolConfig", {}).get("tools"):
        return "The toolConfig field must be defined when using toolUse and toolResult content blocks."
    if not messages or messages[0].get("role") != "user":
        return "A conversation must start with a user message."
    return _messages_complaint(messages)


def _messages_complaint(messages: list[Block]) -> str | None:
    expected: set[str] = set()
    before = ""
    names: set[str] = set()
    for at, given in enumerate(messages):
        blocks: list[Block] = given.get("content") or []
        if given.get("role") == before:
            return "A conversation must alternate between user and assistant roles."
        before = given.get("role", "")
        if not blocks:
            return f"The content field in the Message object at messages.{at} is empty."
        results = [block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block]
        if set(results) != expected or len(results) != len(expected):
            return f"Expected toolResult blocks at messages.{at}.content for the following Ids: {sorted(expected)}"
        for block in blocks:
            if (reason := _block_complaint(block, at, names)) is not None:
                return reason
        expected = {block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block}
    return f"Expected toolResult blocks for {sorted(expected)}" if expected else None


def _block_complaint(block: Block, at: int, names: set[str]) -> str | None:
    match block:
        case {"text": str(text)} if not text.strip():
            return f"The text field in the ContentBlock object at messages.{at} is blank."
        case {"toolUse": {"toolUseId": str(call), "name": str(name), "input": dict()}}:
            is_fine = NAME.fullmatch(call) and NAME.fullmatch(name)
            return None if is_fine else f"messages.{at}: toolUse has an invalid id or name"
        case {"image": {"format": str(kind), "source": {"bytes": str(data)}}}:
            is_fine = base64.b64decode(data).startswith(IMAGES.get(kind, b"?"))
            return None if is_fine else "Could not process image"
        case {"document": {"format": "pdf", "name": str(name), "source": {"bytes": str()}}}:
            if not DOCUMENT.fullmatch(name) or name in names:
                return "The name of a document has characters that are not allowed, or is given twice"
            names.add(name)
            return None
        case {"text": str()} | {"cachePoint": _} | {"toolResult": {"content": [_, *_]}}:
            return None
        case {"reasoningContent": {"reasoningText": {"text": str(), "signature": str()}} | {"redactedContent": str()}}:
            return None
        case _:
            return f"messages.{at}: no such block: {block}"
