"""Converts Claude Code's agents and commands to configuration values, with its tool names.

An agent there may use the tools that it lists, or all; its model is one of its provider's by a
short name, which `extend/agents.py` resolves. Other keys of a page are ignored.
"""

from typing import Any

from msgspec import Struct

from codeloop.config.forms.claude_rules import (
    convert_pattern,
    list_permissions,
    list_tool_names,
    split_rule,
)
from codeloop.extend.homes import is_valid_name
from codeloop.kit.jsonc import is_list
from codeloop.kit.text.frontmatter import FrontmatterError, split_frontmatter
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.wire import JSON

_INHERITED_VALUES = frozenset(("", "inherit", "default"))
_MAX_DESCRIPTION_CHARS = 200


class ClaudePage(Struct, frozen=True):
    """A page: the configuration values of its agent or command, under `name`."""

    name: str
    values: JSON


def read_agent(stem: str, text: str) -> ClaudePage:
    """Read an agent; `stem` is the name of its file.
    Raises FrontmatterError: there is no head with its fields.
    """
    page = split_frontmatter(text)
    head = page.head
    if not head:
        raise FrontmatterError("there is no head that names and describes the agent", 1)
    raw_name = head.get("name")
    values: JSON = {"mode": "subagent"}
    if description := _to_text(head.get("description")):
        values["description"] = description
    if (model := _to_text(head.get("model"))) not in _INHERITED_VALUES:
        values["model"] = model
    if color := _to_text(head.get("color")):
        values["color"] = color
    for key in ("maxTurns", "steps"):
        if isinstance(head.get(key), int) and head[key] > 0:
            values["steps"] = head[key]
    values |= _merge_tools(head.get("tools"), head.get("disallowedTools"))
    if head.get("permissionMode") == "plan":
        # It only plans there; of commands it keeps those that it lists.
        values["permission"] = {"bash": "deny", **values.get("permission", {}), "edit": "deny"}
    if body := page.body.strip():
        values["prompt"] = body
    name = raw_name if isinstance(raw_name, str) and is_valid_name(raw_name) else stem
    return ClaudePage(name, values)


def read_command(name: str, text: str) -> ClaudePage:
    """Read a command; `name` is its path below the folder of commands.
    Raises FrontmatterError: it has no text.
    """
    page = split_frontmatter(text)
    head, body = page.head, page.body.strip()
    if not body:
        raise FrontmatterError("there is no text below the head; it is the command's prompt", 1)
    first = next((line.strip("# \t") for line in body.splitlines() if line.strip("# \t")), "")
    hint = head.get("argument-hint")
    hint_text = _to_text(" ".join(f"[{each}]" for each in hint) if is_list(hint) else hint)
    values: JSON = {
        "template": body,
        "description": one_line(
            f"{_to_text(head.get('description')) or first} {hint_text}".strip(),
            _MAX_DESCRIPTION_CHARS,
        ),
    }
    for key in ("model", "agent"):
        if (value := _to_text(head.get(key))) not in _INHERITED_VALUES:
            values[key] = value
    # Claude Code calls the command of `team/review.md` `/team:review`.
    return ClaudePage(name.replace("/", ":"), values)


def _to_text(value: Any) -> str:
    """Return a value of a head as text; "" for one that is neither text nor a number."""
    return (
        str(value).strip()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
        else ""
    )


def _merge_tools(tools: Any, denied_tools: Any) -> JSON:
    """Convert `tools` and `disallowedTools` to the keys `only` and `permission` of an agent."""
    rules: dict[str, Any] = {}
    values: JSON = {}
    names = list_tool_names(tools)
    if names and "*" not in names:
        only: dict[str, None] = {}
        for name, pattern in map(split_rule, names):
            permissions = list_permissions(name)
            only |= dict.fromkeys(permissions)
            if pattern and permissions:
                # `Bash(git:*)` allows only what it names, so everything else of that tool is denied
                # first; a plain `Bash` beside it allows all.
                tool_rules = rules.setdefault(
                    permissions[0], {} if name in names else {"*": "deny"}
                )
                tool_rules[convert_pattern(pattern)] = "allow"
        values["only"] = list(only)
    # An empty list means no tools; a missing key means all tools.
    elif is_list(tools):
        values["only"] = []
    for name, pattern in map(split_rule, list_tool_names(denied_tools)):
        for permission in list_permissions(name):
            tool_rules = rules.setdefault(permission, {})
            tool_rules[convert_pattern(pattern) if pattern else "*"] = "deny"
    return {**values, "permission": rules} if rules else values
