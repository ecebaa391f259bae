"""Google's generateContent as the service writes it, and its refusals in its own words."""

import json
from collections.abc import Iterator
from typing import Any, cast

from bench.protocols.encoding import dump_json
from tests.support.answers import Answer, Counts

Part = dict[str, Any]
ERROR_STATUSES = {
    "invalid_request_error": (400, "INVALID_ARGUMENT"),
    "authentication_error": (401, "UNAUTHENTICATED"),
    "not_found_error": (404, "NOT_FOUND"),
}
SCHEMA_FIELDS = frozenset(
    {
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "maxItems",
        "minItems",
        "properties",
        "required",
    }
    | {
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "example",
        "anyOf",
        "propertyOrdering",
    }
    | {"default", "items", "minimum", "maximum"}
)
REQUEST_FIELDS = frozenset(
    {
        "contents",
        "systemInstruction",
        "tools",
        "toolConfig",
        "generationConfig",
        "safetySettings",
        "cachedContent",
    }
    | {"serviceTier", "labels"}
)
GENERATION_FIELDS = frozenset(
    {
        "maxOutputTokens",
        "temperature",
        "topP",
        "topK",
        "thinkingConfig",
        "responseMimeType",
        "responseJsonSchema",
    }
    | {"stopSequences", "candidateCount", "seed", "responseSchema"}
)


def stream_events(answer: Answer, model: str) -> Iterator[bytes]:
    """Yield the server-sent events of an answer. Lines end as Google ends them,
    unless the answer says otherwise.
    """
    end = answer.line_end
    if answer.events is not None:
        yield from (f"data: {data}{end}{end}".encode() for data in answer.events)
        return
    pieces = list(_list_parts(answer))
    for index, part in enumerate(pieces):
        last = index == len(pieces) - 1 and answer.finish is not None
        yield f"data: {dump_json(_make_chunk(answer, model, [part], last=last))}{end}{end}".encode()
    if not pieces and answer.finish is not None:
        yield f"data: {dump_json(_make_chunk(answer, model, [], last=True))}{end}{end}".encode()


def make_response(answer: Answer, model: str) -> bytes:
    """Return the body of an answer that does not stream."""
    return dump_json(_make_chunk(answer, model, list(_list_parts(answer)), last=True)).encode()


def _make_chunk(answer: Answer, model: str, parts: list[Part], *, last: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if last:
        candidate["finishReason"] = answer.finish or "STOP"
    chunk: dict[str, Any] = {"candidates": [candidate], "modelVersion": model, "responseId": "r1"}
    if answer.counts is not None:
        chunk["usageMetadata"] = make_usage(answer.counts, last=last)
    return chunk


def make_usage(counts: Counts, *, last: bool = True) -> dict[str, Any]:
    """Return `usageMetadata`; only the last chunk has the tokens of the answer."""
    usage = {"promptTokenCount": counts.input, "totalTokenCount": counts.input}
    if counts.cached:
        usage["cachedContentTokenCount"] = counts.cached
    if last:
        usage["candidatesTokenCount"] = counts.output - counts.reasoning
        usage["totalTokenCount"] = counts.input + counts.output
        if counts.reasoning:
            usage["thoughtsTokenCount"] = counts.reasoning
    return usage


def _list_parts(answer: Answer) -> Iterator[Part]:
    """Yield the parts; the signature comes with the first call,
    else with an empty part at the end.
    """
    if answer.reasoning:
        yield {"text": answer.reasoning, "thought": True}
    for word in answer.words():
        yield {"text": word}
    for index, call in enumerate(answer.calls):
        function_call: dict[str, Any] = {
            "name": call.name,
            "args": json.loads(call.arguments or "{}"),
        }
        if call.id:
            function_call["id"] = call.id
        signed = {"thoughtSignature": answer.signature} if answer.signature and index == 0 else {}
        yield {"functionCall": function_call, **signed}
    if answer.signature and not answer.calls:
        yield {"text": "", "thoughtSignature": answer.signature}


def make_error(kind: str, message: str) -> bytes:
    """Return the body of an error; `kind` is Anthropic's word for it, which all tests use."""
    code, status = ERROR_STATUSES.get(kind, (500, "INTERNAL"))
    return dump_json({"error": {"code": code, "message": message, "status": status}}).encode()


def check_request(path: str, body: bytes) -> str | None:
    """Return the reason for which the service would answer 400, None if it would not.

    Models from Gemini 3 on insist on signatures.
    """
    try:
        request: dict[str, Any] = json.loads(body)
    except ValueError:
        return "Invalid JSON payload received."
    if "alt=sse" not in path:
        return "The request asks for no server-sent events."
    for name, sent, known_fields in (
        ("request", request, REQUEST_FIELDS),
        ("generation_config", request.get("generationConfig", {}), GENERATION_FIELDS),
    ):
        if unknown := sent.keys() - known_fields:
            return f"Invalid JSON payload received. Unknown name \"{min(unknown)}\" at '{name}': Cannot find field."
    for tool in request.get("tools", []):
        for declaration in tool["functionDeclarations"]:
            if (
                reason := check_schema(declaration.get("parameters"), declaration["name"])
            ) is not None:
                return reason
    model = path.partition("/models/")[2].partition(":")[0]
    return _check_contents(request.get("contents") or [], signed="gemini-2" not in model)


def check_schema(schema: Any, where: str) -> str | None:
    """Return the reason for which the service refuses the schema of a function's parameters,
    or None.
    """
    if schema is None:
        return None
    if not isinstance(schema, dict):
        return f"Invalid value at '{where}'"
    node = cast("dict[str, Any]", schema)
    if unknown := node.keys() - SCHEMA_FIELDS:
        return f"Invalid JSON payload received. Unknown name \"{min(unknown)}\" at '{where}': Cannot find field."
    if "anyOf" not in node and not isinstance(node.get("type"), str):
        return f"{where}: type must be specified"
    if any(not isinstance(value, str) or not value for value in node.get("enum", [])):
        return f"{where}.enum: must be texts that are not empty"
    if node.get("enum") and node.get("type") != "string":
        return f"{where}.enum: only allowed for STRING type"
    if node.get("type") == "array" and "items" not in node:
        return f"{where}.items: missing field."
    if set(node.get("required", [])) - node.get("properties", {}).keys():
        return f"{where}.required: property is not defined"
    inner = [
        *node.get("properties", {}).items(),
        *((f"anyOf[{index}]", each) for index, each in enumerate(node.get("anyOf", []))),
    ]
    inner += [("items", node["items"])] if "items" in node else []
    reasons = (check_schema(each, f"{where}.{name}") for name, each in inner)
    return next((reason for reason in reasons if reason is not None), None)


def _check_contents(contents: list[dict[str, Any]], *, signed: bool) -> str | None:
    if not contents:
        return "* GenerateContentRequest.contents: contents is not specified"
    expected: list[Any] = []
    # The service checks signatures in the current turn only.
    turn = max((index for index, each in enumerate(contents) if _is_prompt(each)), default=0)
    for index, content in enumerate(contents):
        parts: list[Part] = content.get("parts") or []
        if content.get("role") not in {"user", "model"} or not parts:
            return f"* contents[{index}]: a role and parts must be given"
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        calls = [part for part in parts if "functionCall" in part]
        if [(each.get("id"), each["name"]) for each in answers] != expected and (
            answers or expected
        ):
            return (
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        if any(not isinstance(each.get("response"), dict) for each in answers):
            return f"* contents[{index}]: function_response.response must be an object"
        if signed and calls and index > turn and not calls[0].get("thoughtSignature"):
            name = calls[0]["functionCall"]["name"]
            return f"Function call is missing a thought_signature in functionCall parts. Function call `{name}`"
        if any("thoughtSignature" in part for part in calls[1:]):
            return f"* contents[{index}]: only the first of parallel calls has a signature"
        expected = [
            (part["functionCall"].get("id"), part["functionCall"]["name"]) for part in calls
        ]
    return None


def _is_prompt(content: dict[str, Any]) -> bool:
    return content.get("role") == "user" and any(
        "functionResponse" not in part for part in content.get("parts", [])
    )
