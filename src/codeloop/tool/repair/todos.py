"""Translates the todos of a call from the forms of other agents, and from text, to ours."""

import re
from typing import Any, cast

from codeloop.schema.wire import JSON

# Matches the start of a todo that was written as a markdown list item: `- [x] `, `1. `.
_CHECKBOX = r"^[-*\d.)\s]*(?:\[( |x|X)\])?\s*"


def repair_todos(value: Any, notes: list[str]) -> Any:
    """Return a list of todos in our form, from a list or from lines of text;
    other values stay as they are.
    """
    if isinstance(value, str) and value[:1] not in {"[", "{"}:
        value = value.strip().split("\n")
    if not isinstance(value, list):
        return value
    return [_repair_todo(item, notes) for item in cast("list[Any]", value)]


def _repair_todo(item: Any, notes: list[str]) -> Any:
    """Return a todo in our form, from a string or an object that has its text under another name.

    Those names are not in `PARAMETER_ALIASES`, because they mean something else for other tools.
    """
    if isinstance(item, str) and (item[:1] not in {"[", "{"} or item[:3] in {"[ ]", "[x]", "[X]"}):
        match = re.match(_CHECKBOX, item)
        status = "completed" if match and str(match[1]).lower() == "x" else "pending"
        notes.append("each todo is an object with `content` and `status`")
        return {"content": item[match.end() if match else 0 :], "status": status}
    todo: JSON = cast("JSON", item) if isinstance(item, dict) else {}
    name = next((each for each in ("task", "step", "todo", "title") if each in todo), None)
    if name is None or "content" in todo:
        return cast("Any", item)
    notes.append(f"`{name}` was taken for `content`")
    return {"content": todo[name], **{key: value for key, value in todo.items() if key != name}}
