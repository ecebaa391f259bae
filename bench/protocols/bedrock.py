"""Bedrock's Converse as the service writes it: binary messages with checksums;
and its refusals in its own words.
"""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any
from zlib import crc32

from bench.protocols.encoding import dump_json, split_arguments
from tests.support.answers import Answer, Counts

Block = dict[str, Any]
REQUEST_FIELDS = frozenset(
    {
        "messages",
        "system",
        "inferenceConfig",
        "toolConfig",
        "guardrailConfig",
        "additionalModelRequestFields",
    }
    | {
        "promptVariables",
        "additionalModelResponseFieldPaths",
        "requestMetadata",
        "performanceConfig",
        "serviceTier",
    }
    | {"outputConfig"}
)
NAME_PATTERN = re.compile(r"[a-zA-Z0-9_-]{1,64}")
DOCUMENT_NAME_PATTERN = re.compile(r"(?!.*\s\s)[A-Za-z0-9\s\-()\[\]]{1,200}")
IMAGE_SIGNATURES = {"png": b"\x89PNG", "jpeg": b"\xff\xd8", "gif": b"GIF8", "webp": b"RIFF"}


def encode_message(headers: dict[str, str], payload: bytes) -> bytes:
    """Encode one message of AWS's binary event stream.

    The prelude holds both lengths and its own checksum;
    the headers and the payload follow, then a checksum of all.
    """
    # 7 is the type of a header whose value is a string.
    packed = b"".join(
        bytes([len(name)])
        + name.encode()
        + b"\x07"
        + len(value.encode()).to_bytes(2, "big")
        + value.encode()
        for name, value in headers.items()
    )
    start = (16 + len(packed) + len(payload)).to_bytes(4, "big") + len(packed).to_bytes(4, "big")
    start += crc32(start).to_bytes(4, "big")
    data = start + packed + payload
    return data + crc32(data).to_bytes(4, "big")


def encode_event(kind: str, **fields: Any) -> bytes:
    """Encode an event. Its field `p` is padding, as the service adds it."""
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return encode_message(headers, dump_json({**fields, "p": "abcdefghij"}).encode())


def encode_exception(kind: str, text: str) -> bytes:
    """Encode an error that comes in the middle of the stream."""
    headers = {
        ":exception-type": kind,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return encode_message(headers, dump_json({"message": text}).encode())


def stream_events(answer: Answer, model: str) -> Iterator[bytes]:
    """Yield the messages of an answer. Given events are `{"name": {...}}`;
    `{"exception": {...}}` is one.
    """
    del model
    if answer.events is not None:
        for data in answer.events:
            ((kind, fields),) = json.loads(data).items()
            is_exception = kind == "exception"
            yield (
                encode_exception(fields["type"], fields["message"])
                if is_exception
                else encode_event(kind, **fields)
            )
        return
    yield encode_event("messageStart", role="assistant")
    for index, (start, deltas) in enumerate(_list_blocks(answer)):
        if start is not None:
            yield encode_event("contentBlockStart", contentBlockIndex=index, start=start)
        for delta in deltas:
            yield encode_event("contentBlockDelta", contentBlockIndex=index, delta=delta)
        yield encode_event("contentBlockStop", contentBlockIndex=index)
    if answer.finish is not None:
        yield encode_event(
            "messageStop", stopReason=answer.finish or ("tool_use" if answer.calls else "end_turn")
        )
        if answer.counts is not None:
            yield encode_event(
                "metadata", usage=make_usage(answer.counts), metrics={"latencyMs": 1}
            )


def _list_blocks(answer: Answer) -> Iterator[tuple[Block | None, list[Block]]]:
    """Yield the `start` of each content block and its deltas; only calls have a start."""
    if answer.reasoning or answer.signature:
        deltas: list[Block] = (
            [{"reasoningContent": {"text": answer.reasoning}}] if answer.reasoning else []
        )
        yield None, [*deltas, {"reasoningContent": {"signature": answer.signature}}]
    if answer.redacted:
        yield None, [{"reasoningContent": {"redactedContent": answer.redacted}}]
    if answer.text:
        yield None, [{"text": word} for word in answer.words()]
    for call in answer.calls:
        pieces = split_arguments(call.arguments)
        yield (
            {"toolUse": {"toolUseId": call.id, "name": call.name}},
            [{"toolUse": {"input": each}} for each in pieces],
        )


def make_usage(counts: Counts) -> dict[str, int]:
    """Return a `usage` object: its input excludes cached tokens."""
    return {
        "inputTokens": counts.input - counts.cached - counts.written,
        "outputTokens": counts.output,
        "totalTokens": counts.input + counts.output,
        "cacheReadInputTokens": counts.cached,
        "cacheWriteInputTokens": counts.written,
    }


def make_response(answer: Answer, model: str) -> bytes:
    """Return the body of an answer that does not stream."""
    del model
    content: list[Block] = [{"text": answer.text}] if answer.text else []
    content += [
        {
            "toolUse": {
                "toolUseId": call.id,
                "name": call.name,
                "input": json.loads(call.arguments or "{}"),
            }
        }
        for call in answer.calls
    ]
    reason = "tool_use" if answer.calls else "end_turn"
    output = {"message": {"role": "assistant", "content": content}}
    return dump_json(
        {"output": output, "stopReason": reason, "usage": make_usage(answer.counts or Counts())}
    ).encode()


def make_error(kind: str, text: str) -> bytes:
    """Return the body of an error; the real service names its kind in a header."""
    del kind
    return dump_json({"message": text}).encode()


def check_request(path: str, body: bytes) -> str | None:
    """Return the reason for which the service would answer 400, None if it would not."""
    try:
        request: dict[str, Any] = json.loads(body)
    except ValueError:
        return "The request is not valid JSON"
    if unknown := request.keys() - REQUEST_FIELDS:
        return f"1 validation error detected: {min(unknown)} is not a field"
    if len(path.partition("?")[0].split("/")) != 4:
        return "The provided model identifier is invalid."
    messages: list[Block] = request.get("messages") or []
    text = json.dumps(request)
    if text.count('"cachePoint"') > 4:
        return "At most 4 cache points are allowed."
    if '"cachePoint"' in text and "claude" not in path and "nova" not in path:
        return "You invoked an unsupported model or your request did not allow prompt caching."
    if "toolUse" in text and not request.get("toolConfig", {}).get("tools"):
        return (
            "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        )
    if not messages or messages[0].get("role") != "user":
        return "A conversation must start with a user message."
    return _check_messages(messages)


def _check_messages(messages: list[Block]) -> str | None:
    expected: set[str] = set()
    before = ""
    names: set[str] = set()
    for index, message in enumerate(messages):
        blocks: list[Block] = message.get("content") or []
        if message.get("role") == before:
            return "A conversation must alternate between user and assistant roles."
        before = message.get("role", "")
        if not blocks:
            return f"The content field in the Message object at messages.{index} is empty."
        results = [block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block]
        if set(results) != expected or len(results) != len(expected):
            return f"Expected toolResult blocks at messages.{index}.content for the following Ids: {sorted(expected)}"
        for block in blocks:
            if (reason := _check_block(block, index, names)) is not None:
                return reason
        expected = {block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block}
    return f"Expected toolResult blocks for {sorted(expected)}" if expected else None


def _check_block(block: Block, index: int, names: set[str]) -> str | None:
    match block:
        case {"text": str(text)} if not text.strip():
            return f"The text field in the ContentBlock object at messages.{index} is blank."
        case {"toolUse": {"toolUseId": str(call), "name": str(name), "input": dict()}}:
            is_fine = NAME_PATTERN.fullmatch(call) and NAME_PATTERN.fullmatch(name)
            return None if is_fine else f"messages.{index}: toolUse has an invalid id or name"
        case {"image": {"format": str(kind), "source": {"bytes": str(data)}}}:
            is_fine = base64.b64decode(data).startswith(IMAGE_SIGNATURES.get(kind, b"?"))
            return None if is_fine else "Could not process image"
        case {"document": {"format": "pdf", "name": str(name), "source": {"bytes": str()}}}:
            if not DOCUMENT_NAME_PATTERN.fullmatch(name) or name in names:
                return (
                    "The name of a document has characters that are not allowed, or is given twice"
                )
            names.add(name)
            return None
        case {"text": str()} | {"cachePoint": _} | {"toolResult": {"content": [_, *_]}}:
            return None
        case {
            "reasoningContent": {"reasoningText": {"text": str(), "signature": str()}}
            | {"redactedContent": str()}
        }:
            return None
        case _:
            return f"messages.{index}: no such block: {block}"
