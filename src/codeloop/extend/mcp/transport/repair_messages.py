"""Reads messages of servers that are not quite of the protocol's form,
and brings their results into it.

What can be understood is kept. What can't is left out by its name, and never takes the rest along.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from codeloop.kit.jsonc import is_list, is_object
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.wire import JSON

PARSE_ERROR = -32700
# An answer whose JSON is broken still says near its start which request it answers.
_ANSWER_PATTERN = re.compile(rb'^\s*\{.{0,200}?"id"\s*:\s*(\d+)\s*[,}]', re.DOTALL)
# Without one of these a line is no message, however much its start looks like one.
_KEYS_PATTERN = re.compile(rb'"(?:jsonrpc|result|error)"\s*:')
_KEYS = frozenset({"id", "result", "error", "method", "params"})
_SHOWN_CHARS = 200
_BLOCK_CHARS = 4_000


def repair_message(line: bytes) -> JSON | None:
    """Return the message in a line that the package could not read; None: there is none in it.

    Halves of characters become U+FFFD. An answer that can't be understood becomes an error,
    so that its request ends.
    """
    text = line.decode("utf-8", "replace").lstrip("\ufeff")
    try:
        value = _mend_texts(json.loads(text, strict=False))
    except (ValueError, RecursionError) as error:
        answer = _ANSWER_PATTERN.match(line)
        if answer is None or b'"method"' in line[: answer.end()] or not _KEYS_PATTERN.search(line):
            return None
        return _make_error(int(answer[1]), f"it is not JSON ({one_line(str(error), 100)})")
    if not is_object(value) or not _is_message(value):
        return None
    message: JSON = {**value, "jsonrpc": "2.0"}
    number = message.get("id")
    if isinstance(number, float) and number.is_integer():
        message["id"] = int(number)
    if "method" in message:
        return message
    error = message.pop("error", None)
    if error is not None:
        message.pop("result", None)
        return {**message, "error": _repair_error(error)}
    if is_object(message.get("result")):
        return message
    shown = one_line(json.dumps(message.get("result"), ensure_ascii=False), _SHOWN_CHARS)
    return _make_error(message.get("id"), f"its result is no object: {shown}")


def _is_message(value: JSON) -> bool:
    """Return whether an object is a message: a line of a log may have an `id`, too."""
    is_bare = "id" in value and len(value) > 1 and value.keys() <= _KEYS
    return "jsonrpc" in value or is_bare


def _make_error(request: Any, why: str) -> JSON:
    error = {"code": PARSE_ERROR, "message": f"its answer is not valid: {why}"}
    return {"jsonrpc": "2.0", "id": request, "error": error}


def _repair_error(error: Any) -> JSON:
    if not is_object(error):
        text = error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)
        return {"code": PARSE_ERROR, "message": text}
    code, message = error.get("code"), error.get("message")
    about = message if isinstance(message, str) else json.dumps(error, ensure_ascii=False)
    return {**error, "code": code if type(code) is int else PARSE_ERROR, "message": about}


def _mend_texts(value: Any) -> Any:
    """Return a JSON value whose texts have whole characters."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if is_list(value):
        return [_mend_texts(each) for each in value]
    if is_object(value):
        return {_mend_texts(key): _mend_texts(each) for key, each in value.items()}
    return value


def repair_body(body: bytes) -> bytes:
    """Return the body of an HTTP response, or the data of one of its events,
    as the package can read it.
    """
    from mcp_types import jsonrpc_message_adapter

    try:
        jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValueError:
        message = repair_message(body)
        return body if message is None else json.dumps(message).encode()
    return body


def repair_result(method: str, result: JSON, note: Callable[[str], None]) -> JSON:
    """Return the result of a request in the protocol's form;
    `note` gets what was left out, and why.
    """
    result = _drop_nulls(result)
    match method:
        case "initialize":
            return _repair_introduction(result)
        case "tools/list":
            return _repair_list(result, "tools", _repair_tool, note)
        case "prompts/list":
            return _repair_list(result, "prompts", _repair_prompt, note)
        case "resources/list":
            return _repair_list(result, "resources", _repair_resource, note)
        case "resources/templates/list":
            return _repair_list(result, "resourceTemplates", _repair_resource, note)
        case "tools/call":
            return _repair_call(result)
        case "prompts/get":
            messages = result.get("messages")
            return {
                **result,
                "messages": [
                    {**each, "content": _repair_block(each.get("content"))}
                    for each in (messages if is_list(messages) else [])
                    if is_object(each)
                ],
            }
        case _:
            return result


def _repair_introduction(result: JSON) -> JSON:
    info, able = result.get("serverInfo"), result.get("capabilities")
    about: JSON = info if is_object(info) else {}
    capabilities: JSON = able if is_object(able) else {}
    texts = {key: str(about.get(key) or "") for key in ("name", "version")}
    kept = {key: value for key, value in result.items() if key != "instructions"}
    if isinstance(result.get("instructions"), str):
        kept["instructions"] = result["instructions"]
    return {
        **kept,
        "serverInfo": texts,
        "capabilities": {
            key: value if is_object(value) else {}
            for key, value in capabilities.items()
            if value is not None and value is not False
        },
    }


def _repair_list(
    result: JSON,
    key: str,
    repair: Callable[[JSON], JSON | str],
    note: Callable[[str], None],
) -> JSON:
    """Return a list's page whose items are repaired. `repair` returns an item,
    or why it is left out.
    """
    items = result.get(key, [])
    # What is no list at all is an error of the whole list.
    if not is_list(items):
        return result
    kept: list[JSON] = []
    for number, item in enumerate(items, 1):
        item_or_reason = repair(item) if is_object(item) else "it is no object"
        if isinstance(item_or_reason, str):
            name = item.get("name") if is_object(item) else None
            shown = name if isinstance(name, str) and name else f"number {number}"
            note(f"its {_ITEM_NAMES[key]} {one_line(shown, 100)} can't be used: {item_or_reason}")
        else:
            kept.append(item_or_reason)
    cursor = result.get("nextCursor")
    rest = {name: value for name, value in result.items() if name not in {key, "nextCursor"}}
    return {**rest, key: kept} | ({"nextCursor": str(cursor)} if cursor else {})


_ITEM_NAMES = {
    "tools": "tool",
    "prompts": "prompt",
    "resources": "resource",
    "resourceTemplates": "template of resources",
}


def _keep_texts(item: JSON, *names: str) -> JSON:
    return {name: item[name] for name in names if isinstance(item.get(name), str)}


def _repair_tool(tool: JSON) -> JSON | str:
    """Return a tool with what is used of it. Its output schema is not: results are taken as
    they come.
    """
    if not isinstance(tool.get("name"), str) or not tool["name"]:
        return "it has no name"
    schema = tool.get("inputSchema")
    if schema is None or schema is True:
        schema = {}
    if not is_object(schema):
        return "its inputSchema is no object"
    types = schema.get("type", "object")
    if types != "object" and not (is_list(types) and "object" in types):
        return f"its inputSchema has the type {one_line(json.dumps(types), 60)}, not object"
    properties, required = schema.get("properties"), schema.get("required")
    kept: JSON = {
        key: value for key, value in schema.items() if key not in {"properties", "required"}
    }
    if is_object(properties):
        kept["properties"] = properties
    elif properties:
        return "the properties of its inputSchema are no object"
    if is_list(required):
        kept["required"] = [name for name in required if isinstance(name, str)]
    hints, execution = tool.get("annotations"), tool.get("execution")
    repaired: JSON = {
        **_keep_texts(tool, "name", "title", "description"),
        "inputSchema": {**kept, "type": "object"},
    }
    if is_object(hints):
        is_read_only = hints.get("readOnlyHint") is True
        repaired["annotations"] = {**_keep_texts(hints, "title"), "readOnlyHint": is_read_only}
    if is_object(execution) and execution.get("taskSupport") == "required":
        repaired["execution"] = {"taskSupport": "required"}
    return repaired


def _repair_prompt(prompt: JSON) -> JSON | str:
    if not isinstance(prompt.get("name"), str) or not prompt["name"]:
        return "it has no name"
    arguments = prompt.get("arguments")
    return {
        **_keep_texts(prompt, "name", "title", "description"),
        "arguments": [
            {**_keep_texts(each, "name", "description"), "required": each.get("required") is True}
            for each in (arguments if is_list(arguments) else [])
            if is_object(each) and isinstance(each.get("name"), str)
        ],
    }


def _repair_resource(resource: JSON) -> JSON | str:
    kept = _keep_texts(resource, "uri", "uriTemplate", "name", "title", "description", "mimeType")
    address = kept.get("uri") or kept.get("uriTemplate")
    if not address:
        return "it has no address"
    return {"name": address, **kept}


def _repair_call(result: JSON) -> JSON:
    content = result.get("content", [])
    if not is_list(content):
        content = [content]
    repaired: JSON = {**result, "content": [_repair_block(each) for each in content]}
    if "isError" in result:
        repaired["isError"] = result["isError"] in (True, "true", 1)
    structured = result.get("structuredContent")
    if structured is not None and not is_object(structured):
        repaired["structuredContent"] = {"result": structured}
    return repaired


def _repair_block(block: Any) -> JSON:
    """Return a block of content; one that can't be understood as a text that shows it."""
    from mcp_types import ContentBlock
    from pydantic import TypeAdapter

    if isinstance(block, str):
        return {"type": "text", "text": block}
    if is_object(block):
        kept = _drop_nulls(block)
        if "type" not in kept and isinstance(kept.get("text"), str):
            kept["type"] = "text"
        match kept:
            case {"type": "resource_link", "uri": str(address)}:
                kept.setdefault("name", address)
            case {"type": "resource", "resource": {} as resource}:
                kept["resource"] = {"uri": "", **_drop_nulls(resource)}
            # What kind of picture it is, its data says.
            case {"type": "image", "data": str()}:
                kept.setdefault("mimeType", "image/png")
            case _:
                pass
        for candidate in (kept, {k: v for k, v in kept.items() if k not in _OPTIONAL_KEYS}):
            try:
                TypeAdapter(ContentBlock).validate_python(candidate, by_name=False)
            except ValueError:
                continue
            return candidate
        if isinstance(kept.get("text"), str):
            return {"type": "text", "text": kept["text"]}
    shown = msgspec.json.encode(block).decode("utf-8", "replace")
    cut = shown if len(shown) <= _BLOCK_CHARS else f"{shown[:_BLOCK_CHARS]} ..."
    return {"type": "text", "text": f"[a block that is not of the protocol's form: {cut}]"}


def _drop_nulls(value: JSON) -> JSON:
    return {key: item for key, item in value.items() if item is not None}


_OPTIONAL_KEYS = frozenset({"annotations", "_meta", "title", "description", "icons", "size"})
