"""What the real services refuse in a history, with their own words."""

import json
from typing import Any

from bench.responses import responses_complaint

Message = dict[str, Any]


def complaint(path: str, body: bytes) -> str | None:
    """Say why the service of the path would answer 400; None when it would not."""
    try:
        request = json.loads(body)
    except ValueError:
        return "We could not parse the JSON body of your request."
    if path.endswith("/responses"):
        return responses_complaint(request)
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages: at least one message is required"
    if not request.get("model"):
        return "model: field required"
    return anthropic_complaint(request) if path.endswith("/messages") else openai_complaint(request)


def openai_complaint(request: dict[str, Any]) -> str | None:
    """Check roles, content and the pairing of calls and tool messages."""
    expected: list[str] = []
    for at, message in enumerate(request["messages"]):
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in expected:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
            expected.remove(message["tool_call_id"])
            if not isinstance(message.get("content"), str):
                return f"messages.{at}.content: a tool message needs text"
            continue
        if expected:
            return (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(expected)}"
            )
        if role not in {"system", "developer", "user", "assistant"}:
            return f"messages.{at}.role: {role!r} is not one of the roles"
        calls: list[Message] = message.get("tool_calls") or []
        if role == "assistant" and not message.get("content") and not calls:
            return f"messages.{at}: an assistant message needs content or tool_calls"
        if role != "assistant" and not message.get("content"):
            return f"messages.{at}.content: must not be empty"
        if (reason := _openai_calls(at, calls)) is not None:
            return reason
        expected = [call["id"] for call in calls]
    return f"tool_call_ids without response messages: {', '.join(expected)}" if expected else None


def _openai_calls(at: int, calls: list[Message]) -> str | None:
    ids = [call.get("id") for call in calls]
    if len(set(ids)) != len(ids) or not all(ids):
        return f"messages.{at}.tool_calls: ids must be there and differ"
    for call in calls:
        function: Message = call.get("function") or {}
        if not function.get("name"):
            return f"messages.{at}.tool_calls: function.name must not be empty"
        try:
            arguments = json.loads(function.get("arguments") or "")
        except (TypeError, ValueError):
            arguments = None
        if not isinstance(arguments, dict):
            return f"messages.{at}.tool_calls: function.arguments is no JSON object"
    return None


def anthropic_complaint(request: dict[str, Any]) -> str | None:
    """Check roles, blocks, the pairing of tool_use and tool_result, and the number of cache marks."""
    if not isinstance(request.get("max_tokens"), int) or request["max_tokens"] < 1:
        return "max_tokens: field required"
    if json.dumps(request).count('"cache_control"') > 4:
        return "A maximum of 4 blocks with cache_control may be provided."
    messages: list[Message] = request["messages"]
    if messages[0].get("role") != "user":
        return 'messages: first message must use the "user" role'
    expected: list[str] = []
    before = ""
    for at, message in enumerate(messages):
        blocks = message.get("content")
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        if not blocks:
            return f"messages.{at}: all messages must have non-empty content"
        if message.get("role") == before:
            return f"messages.{at}: roles must alternate"
        before = message.get("role", "")
        if (reason := _blank(at, blocks)) is not None:
            return reason
        results = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
        if missing := [each for each in expected if each not in results]:
            return f"messages.{at}: `tool_use` ids were found without `tool_result` blocks after: {', '.join(missing)}"
        if extra := [each for each in results if each not in expected]:
            return (
                f"messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(map(str, extra))}"
            )
        expected = [block["id"] for block in blocks if block.get("type") == "tool_use"]
        if len(set(expected)) != len(expected):
            return f"messages.{at}: `tool_use` ids must be unique"
    return "`tool_use` ids were found without `tool_result` blocks after" if expected else None


def _blank(at: int, blocks: list[Message]) -> str | None:
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)} if not text.strip():
                return f"messages.{at}: text content blocks must contain non-whitespace text"
            case {"type": "thinking"} if not block.get("signature"):
                return f"messages.{at}: thinking.signature: field required"
            case {"type": "tool_use", "input": given} if not isinstance(given, dict):
                return f"messages.{at}: tool_use.input: must be an object"
            case _:
                continue
    return None
