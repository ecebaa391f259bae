"""OpenAI's chat completions as the service writes them, and its refusals in its own words."""

import json
from collections.abc import Iterator
from typing import Any

from bench.protocols.encoding import CREATED, dump_json, split_arguments
from tests.support.answers import Answer, Counts

Message = dict[str, Any]
ROLES = frozenset({"system", "developer", "user", "assistant"})


def stream_events(answer: Answer, model: str) -> Iterator[bytes]:
    """Yield the server-sent events of a chat completion."""
    end = answer.line_end
    if answer.events is not None:
        yield from (f"data: {data}{end}{end}".encode() for data in answer.events)
        return
    head = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": model,
    }

    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return f"data: {dump_json({**head, 'choices': [choice], 'usage': None})}{end}{end}".encode()

    yield event({"role": "assistant", "content": ""})
    if answer.reasoning:
        yield event({"reasoning_content": answer.reasoning})
    for word in answer.words():
        yield event({"content": word})
    for index, call in enumerate(answer.calls):
        function: dict[str, Any] = {
            "name": call.name,
            "arguments": "" if call.arguments is not None else None,
        }
        yield event(
            {
                "tool_calls": [
                    {"index": index, "id": call.id, "type": "function", "function": function}
                ]
            }
        )
        for piece in split_arguments(call.arguments):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    if answer.finish is not None:
        yield event({}, answer.finish or ("tool_calls" if answer.calls else "stop"))
        if answer.counts is not None:
            yield f"data: {dump_json({**head, 'choices': [], 'usage': make_usage(answer.counts)})}{end}{end}".encode()
        yield f"data: [DONE]{end}{end}".encode()


def make_usage(counts: Counts) -> dict[str, Any]:
    """Return the `usage` object: its prompt tokens include cached ones."""
    return {
        "prompt_tokens": counts.input,
        "completion_tokens": counts.output,
        "total_tokens": counts.input + counts.output,
        "prompt_tokens_details": {"cached_tokens": counts.cached},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning},
    }


def make_response(answer: Answer, model: str) -> bytes:
    """Return a chat completion that does not stream."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in answer.calls
        ]
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": "tool_calls" if answer.calls else "stop",
    }
    usage = make_usage(answer.counts or Counts())
    return dump_json(
        {
            "id": "1",
            "object": "chat.completion",
            "model": model,
            "choices": [choice],
            "usage": usage,
        }
    ).encode()


def make_error(kind: str, message: str) -> bytes:
    """Return the body of an error."""
    return dump_json(
        {"error": {"message": message, "type": kind, "param": None, "code": None}}
    ).encode()


def check_request(path: str, body: bytes) -> str | None:
    """Return the reason for which the service would answer 400, None if it would not."""
    del path
    try:
        request: dict[str, Any] = json.loads(body)
    except ValueError:
        return "We could not parse the JSON body of your request."
    if not isinstance(request.get("messages"), list) or not request["messages"]:
        return "messages: at least one message is required"
    if not request.get("model"):
        return "model: field required"
    return _check_messages(request["messages"])


def _check_messages(messages: list[Message]) -> str | None:
    """Check roles, content and the pairing of calls and tool messages."""
    expected: list[str] = []
    for index, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in expected:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
            expected.remove(message["tool_call_id"])
            if not isinstance(message.get("content"), str):
                return f"messages.{index}.content: a tool message needs text"
            continue
        if expected:
            return (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(expected)}"
            )
        if role not in ROLES:
            return f"messages.{index}.role: {role!r} is not one of the roles"
        calls: list[Message] = message.get("tool_calls") or []
        if role == "assistant" and not message.get("content") and not calls:
            return f"messages.{index}: an assistant message needs content or tool_calls"
        if role != "assistant" and not message.get("content"):
            return f"messages.{index}.content: must not be empty"
        if (reason := _check_calls(index, calls)) is not None:
            return reason
        expected = [call["id"] for call in calls]
    return f"tool_call_ids without response messages: {', '.join(expected)}" if expected else None


def _check_calls(index: int, calls: list[Message]) -> str | None:
    ids = [call.get("id") for call in calls]
    if len(set(ids)) != len(ids) or not all(ids):
        return f"messages.{index}.tool_calls: ids must be there and differ"
    for call in calls:
        function: Message = call.get("function") or {}
        if not function.get("name"):
            return f"messages.{index}.tool_calls: function.name must not be empty"
        try:
            arguments = json.loads(function.get("arguments") or "")
        except (TypeError, ValueError):
            arguments = None
        if not isinstance(arguments, dict):
            return f"messages.{index}.tool_calls: function.arguments is not JSON object"
    return None
