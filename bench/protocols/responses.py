"""OpenAI's Responses as the service writes them, and its refusals in its own words."""

import json
from collections.abc import Iterator
from typing import Any

from bench.protocols.encoding import CREATED, dump_json, split_arguments
from tests.support.answers import Answer, Call, Counts

Item = dict[str, Any]
REQUEST_FIELDS = frozenset(
    {
        "background",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "metadata",
        "model",
        "parallel_tool_calls",
    }
    | {
        "previous_response_id",
        "prompt_cache_key",
        "reasoning",
        "service_tier",
        "store",
        "stream",
        "temperature",
    }
    | {
        "text",
        "tool_choice",
        "tools",
        "top_p",
        "truncation",
        "safety_identifier",
        "prompt_cache_retention",
    }
)
ITEM_FIELDS: dict[str, frozenset[str]] = {
    "message": frozenset({"type", "role", "content", "id", "status", "phase"}),
    "reasoning": frozenset({"type", "id", "summary", "encrypted_content", "content", "status"}),
    "function_call": frozenset({"type", "id", "call_id", "name", "arguments", "status"}),
    "function_call_output": frozenset({"type", "id", "call_id", "output", "status"}),
    "custom_tool_call": frozenset({"type", "id", "call_id", "name", "input"}),
    "custom_tool_call_output": frozenset({"type", "id", "call_id", "output"}),
}
PART_FIELDS: dict[str, frozenset[str]] = {
    "input_text": frozenset({"type", "text"}),
    "input_image": frozenset({"type", "image_url", "detail", "file_id"}),
    "input_file": frozenset({"type", "filename", "file_data", "file_id", "file_url"}),
    "output_text": frozenset({"type", "text", "annotations", "logprobs"}),
    "refusal": frozenset({"type", "refusal"}),
}
MAX_ID_LENGTH = 64


def stream_events(answer: Answer, model: str) -> Iterator[bytes]:
    """Yield the server-sent events of a response."""
    end = answer.line_end
    if answer.events is not None:
        yield from (f"data: {data}{end}{end}".encode() for data in answer.events)
        return
    number = 0

    def event(kind: str, **fields: Any) -> bytes:
        nonlocal number
        number += 1
        data = dump_json({"type": kind, **fields, "sequence_number": number})
        return f"event: {kind}{end}data: {data}{end}{end}".encode()

    head = _make_response_object(model, "in_progress", [], None)
    yield event("response.created", response=head)
    yield event("response.in_progress", response=head)
    output = list(_list_items(answer))
    for index, item in enumerate(output):
        yield event("response.output_item.added", output_index=index, item=_empty_item(item))
        for kind, fields in _list_deltas(item, answer):
            yield event(kind, item_id=item["id"], output_index=index, **fields)
        yield event("response.output_item.done", output_index=index, item=item)
    if answer.finish is not None:
        status = "incomplete" if answer.finish else "completed"
        response = _make_response_object(model, status, output, answer.counts)
        if answer.finish:
            response["incomplete_details"] = {"reason": answer.finish}
        yield event(f"response.{status}", response=response)


def make_response(answer: Answer, model: str) -> bytes:
    """Return the body of a response that does not stream."""
    return dump_json(
        _make_response_object(
            model, "completed", list(_list_items(answer)), answer.counts or Counts()
        )
    ).encode()


def _make_response_object(
    model: str, status: str, output: list[Item], counts: Counts | None
) -> Item:
    usage = counts and {
        "input_tokens": counts.input,
        "input_tokens_details": {"cached_tokens": counts.cached},
        "output_tokens": counts.output,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning},
        "total_tokens": counts.input + counts.output,
    }
    head = {
        "id": "resp_1",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
    }
    return {
        **head,
        "incomplete_details": None,
        "model": model,
        "output": output,
        "store": False,
        "usage": usage,
    }


def _list_items(answer: Answer) -> Iterator[Item]:
    if answer.reasoning or answer.signature:
        summary = [{"type": "summary_text", "text": answer.reasoning}] if answer.reasoning else []
        yield {
            "id": "rs_1",
            "type": "reasoning",
            "summary": summary,
            "encrypted_content": answer.signature or None,
        }
    if answer.text:
        part: Item = {"type": "output_text", "text": answer.text, "annotations": []}
        phase = "commentary" if answer.calls else "final_answer"
        message: Item = {
            "id": "msg_1",
            "type": "message",
            "status": "completed",
            "role": "assistant",
        }
        yield {**message, "phase": phase, "content": [part]}
    for number, call in enumerate(answer.calls):
        yield _make_call(number, call)


def _make_call(number: int, call: Call) -> Item:
    # The one custom tool: its input is a patch as plain text, where other tools have a JSON object.
    if call.name == "apply_patch" and not (call.arguments or "").startswith("{"):
        kind: Item = {"id": f"ctc_{number}", "type": "custom_tool_call", "input": call.arguments}
    else:
        kind = {"id": f"fc_{number}", "type": "function_call", "arguments": call.arguments}
    return {**kind, "status": "completed", "call_id": call.id, "name": call.name}


def _empty_item(item: Item) -> Item:
    """Return an item as its first event has it: what is streamed later is empty."""
    empty: Item = {"content": [], "summary": [], "arguments": "", "input": ""}
    return {**item, **{key: value for key, value in empty.items() if key in item}}


def _list_deltas(item: Item, answer: Answer) -> Iterator[tuple[str, Item]]:
    """Yield the kind and the fields of each event between an item's first and last one."""
    match item["type"]:
        case "reasoning" if answer.reasoning:
            yield (
                "response.reasoning_summary_part.added",
                {"summary_index": 0, "part": {"type": "summary_text"}},
            )
            yield (
                "response.reasoning_summary_text.delta",
                {"summary_index": 0, "delta": answer.reasoning},
            )
            yield (
                "response.reasoning_summary_text.done",
                {"summary_index": 0, "text": answer.reasoning},
            )
        case "message":
            yield (
                "response.content_part.added",
                {"content_index": 0, "part": {"type": "output_text", "text": ""}},
            )
            for word in answer.words():
                yield (
                    "response.output_text.delta",
                    {"content_index": 0, "delta": word, "logprobs": []},
                )
            yield "response.output_text.done", {"content_index": 0, "text": answer.text}
        case "function_call":
            for piece in split_arguments(item["arguments"]):
                yield "response.function_call_arguments.delta", {"delta": piece}
            yield "response.function_call_arguments.done", {"arguments": item["arguments"]}
        case "custom_tool_call":
            for piece in split_arguments(item["input"]):
                yield "response.custom_tool_call_input.delta", {"delta": piece}
            yield "response.custom_tool_call_input.done", {"input": item["input"]}
        case _:
            return


def check_request(path: str, body: bytes) -> str | None:
    """Return the reason for which the service would answer 400, None if it would not.

    Checks fields, items, the pairing of calls and outputs,
    and that thinking comes back with its content.
    """
    del path
    try:
        request: dict[str, Any] = json.loads(body)
    except ValueError:
        return "We could not parse the JSON body of your request."
    if unknown := request.keys() - REQUEST_FIELDS:
        return f"Unknown parameter: '{min(unknown)}'."
    sent_items: list[Item] | None = request.get("input")
    if not request.get("model") or not isinstance(sent_items, list) or not sent_items:
        return "Missing required parameter: 'model' or 'input'."
    items: list[Item] = [{"type": "message", **item} for item in sent_items]
    waiting: dict[str, str] = {}
    for index, item in enumerate(items):
        kind = item["type"]
        if (reason := _check_item(index, item)) is not None:
            return reason
        if kind in {"function_call", "custom_tool_call"}:
            if len(item["call_id"]) > MAX_ID_LENGTH:
                return f"Invalid 'input[{index}].call_id': string too long. Expected a string with maximum length 64."
            waiting[item["call_id"]] = f"{kind}_output"
        elif kind.endswith("_output"):
            if waiting.pop(item["call_id"], None) != kind:
                return f"No tool call found for {kind} with call_id {item['call_id']}."
        elif kind == "message" and item["role"] != "assistant" and waiting:
            # Calls without outputs before the next prompt: the reason after the
            # loop names one of them.
            break
        if kind == "reasoning" and (
            index + 1 == len(items) or items[index + 1]["type"] == "reasoning"
        ):
            return f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
    return f"No tool output found for function call {next(iter(waiting))}." if waiting else None


def _check_item(index: int, item: Item) -> str | None:
    fields = ITEM_FIELDS.get(item["type"])
    if fields is None:
        return f"Invalid value: '{item['type']}' for 'input[{index}].type'."
    if unknown := item.keys() - fields:
        return f"Unknown parameter: 'input[{index}].{min(unknown)}'."
    if item["type"] == "reasoning" and not item.get("encrypted_content"):
        return f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false."
    if item["type"] == "function_call" and not isinstance(json.loads(item["arguments"]), dict):
        return f"Invalid 'input[{index}].arguments'."
    if item["type"] != "message" or isinstance(item["content"], str):
        return None
    for part in item["content"]:
        allowed = PART_FIELDS.get(part["type"])
        fits_role = part["type"].startswith("input_") != (item["role"] == "assistant")
        if allowed is None or not fits_role or part.keys() - allowed:
            return f"Invalid value: 'input[{index}].content' of a message by {item['role']}."
    return None
