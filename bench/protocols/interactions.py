"""Google's Interactions API as the service writes it, and its refusals in its own words."""

import json
from collections.abc import Iterator
from typing import Any

from bench.protocols.encoding import dump_json, split_arguments
from tests.support.answers import Answer, Counts

Step = dict[str, Any]
REQUEST_FIELDS = frozenset(
    {
        "model",
        "input",
        "stream",
        "store",
        "system_instruction",
        "tools",
        "generation_config",
        "response_format",
    }
    | {"safety_settings", "service_tier", "labels"}
)
GENERATION_FIELDS = frozenset(
    {
        "max_output_tokens",
        "temperature",
        "top_p",
        "seed",
        "stop_sequences",
        "thinking_level",
        "thinking_summaries",
    }
    | {"tool_choice"}
)
THINKING_LEVELS = frozenset({"minimal", "low", "medium", "high", "xhigh"})


def stream_events(answer: Answer, model: str) -> Iterator[bytes]:
    """Yield the server-sent events of an interaction."""
    end = answer.line_end

    def event(kind: str, **fields: Any) -> bytes:
        return f"event: {kind}{end}data: {dump_json({**fields, 'event_type': kind})}{end}{end}".encode()

    if answer.events is not None:
        yield from (f"data: {data}{end}{end}".encode() for data in answer.events)
        return
    about = {"id": "v1_1", "object": "interaction", "model": model}
    yield event("interaction.created", interaction={**about, "status": "in_progress"})
    yield event("interaction.status_update", interaction_id="v1_1", status="in_progress")
    for index, (step, deltas) in enumerate(_list_steps(answer)):
        yield event("step.start", index=index, step=step)
        for delta in deltas:
            yield event("step.delta", index=index, delta=delta)
        yield event("step.stop", index=index)
    if answer.finish is not None:
        status = answer.finish or ("requires_action" if answer.calls else "completed")
        counted = {"usage": make_usage(answer.counts)} if answer.counts is not None else {}
        yield event("interaction.completed", interaction={**about, "status": status, **counted})
        yield f"event: done{end}data: [DONE]{end}{end}".encode()


def _list_steps(answer: Answer) -> Iterator[tuple[Step, list[Step]]]:
    """Yield each step as it starts, and its deltas."""
    if answer.reasoning or answer.signature:
        summary: list[Step] = []
        if answer.reasoning:
            content = {"type": "text", "text": answer.reasoning}
            summary = [{"type": "thought_summary", "content": content}]
        signed = (
            [{"type": "thought_signature", "signature": answer.signature}]
            if answer.signature
            else []
        )
        yield {"type": "thought"}, summary + signed
    if answer.text:
        yield {"type": "model_output"}, [{"type": "text", "text": word} for word in answer.words()]
    for call in answer.calls:
        pieces = split_arguments(call.arguments)
        deltas = [{"type": "arguments_delta", "arguments": piece} for piece in pieces]
        yield {"type": "function_call", "id": call.id, "name": call.name, "arguments": {}}, deltas


def make_usage(counts: Counts) -> dict[str, Any]:
    """Return an interaction's `usage`."""
    return {
        "total_input_tokens": counts.input,
        "total_cached_tokens": counts.cached,
        "total_output_tokens": counts.output - counts.reasoning,
        "total_thought_tokens": counts.reasoning,
        "total_tokens": counts.input + counts.output,
    }


def make_response(answer: Answer, model: str) -> bytes:
    """Return the body of an interaction that does not stream."""
    steps: list[Step] = []
    if answer.signature:
        steps.append({"type": "thought", "signature": answer.signature})
    if answer.text:
        steps.append({"type": "model_output", "content": [{"type": "text", "text": answer.text}]})
    steps += [
        {
            "type": "function_call",
            "id": call.id,
            "name": call.name,
            "arguments": json.loads(call.arguments or "{}"),
        }
        for call in answer.calls
    ]
    status = "requires_action" if answer.calls else "completed"
    counts = make_usage(answer.counts or Counts())
    return dump_json(
        {"id": "v1_1", "model": model, "status": status, "steps": steps, "usage": counts}
    ).encode()


def check_request(path: str, body: bytes) -> str | None:
    """Return the reason for which the service would answer 400, None if it would not."""
    del path
    try:
        request: dict[str, Any] = json.loads(body)
    except ValueError:
        return "Invalid JSON payload received."
    generation: dict[str, Any] = request.get("generation_config", {})
    for sent, known_fields in ((request, REQUEST_FIELDS), (generation, GENERATION_FIELDS)):
        if unknown := sent.keys() - known_fields:
            return f"Unknown parameter: '{min(unknown)}'."
    if request.get("store") is not False:
        return "store: this account keeps nothing"
    if not request.get("model"):
        return "model: is required"
    if generation.get("thinking_level", "low") not in THINKING_LEVELS:
        return "generation_config.thinking_level: invalid value"
    for tool in request.get("tools", []):
        if tool.get("type") != "function" or not tool.get("name"):
            return "tools: type and name are required"
    return _check_steps(request.get("input") or [])


def _check_steps(steps: list[Step]) -> str | None:
    if not steps:
        return "input: is required"
    open_calls: dict[str, str] = {}
    for index, step in enumerate(steps):
        match step:
            case {"type": "function_call", "id": str(call), "name": str(name), "arguments": dict()}:
                if call in open_calls:
                    return f"input[{index}]: two calls have the id {call}"
                open_calls[call] = name
            case {"type": "function_result", "call_id": str(call), "result": _}:
                if open_calls.pop(call, None) is None:
                    return f"input[{index}]: no function_call has the id {call}"
            case {"type": "thought", "signature": str(signature)} if signature:
                continue
            case {"type": "user_input" | "model_output", "content": [_, *_]}:
                if open_calls:
                    return (
                        f"input[{index}]: a function_result is missing for {', '.join(open_calls)}"
                    )
            case _:
                return f"input[{index}]: not a step: {step}"
    return (
        f"input: a function_result is missing for {', '.join(open_calls)}" if open_calls else None
    )
