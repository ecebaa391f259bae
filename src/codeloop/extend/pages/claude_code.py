"""Converts Claude Code's agents and commands to configuration values, with its tool names.

An agent there may use the tools that it lists, or all; its model is one of its provider's by a short name, which
`extend/agents.py` resolves. Other keys of a page are ignored.
"""

import re
from typing import Any

from msgspec import Struct

from codeloop.extend.homes import is_valid_name
from codeloop.kit.jsonc import is_list, is_object
from codeloop.kit.text.frontmatter import Frontmatter, FrontmatterError, split_frontmatter
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.wire import JSON

# The names of Claude Code's tools -> the permissions that they correspond to.
_TOOL_PERMISSIONS: dict[str, tuple[str, ...]] = {
    "Read": ("read", "lsp"),
    "Write": ("edit",),
    "Edit": ("edit",),
    "MultiEdit": ("edit",),
    "NotebookEdit": ("edit",),
    "NotebookRead": ("read",),
    "Bash": ("bash", "bash_output", "bash_kill"),
    "BashOutput": ("bash_output",),
    "KillShell": ("bash_kill",),
    "KillBash": ("bash_kill",),
    "Grep": ("grep",),
    "Glob": ("glob",),
    "LS": ("list",),
    "WebFetch": ("webfetch",),
    "WebSearch": ("websearch",),
    "Task": ("task",),
    "Agent": ("task",),
    "TodoWrite": ("todowrite",),
    "TodoRead": ("todoread",),
    "AskUserQuestion": ("question",),
    "Skill": ("skill",),
    "LSP": ("lsp",),
}
# Matches `key: value`.
_HEAD_LINE = re.compile(r"^([A-Za-z][\w-]*):[ \t]*(.*?)[ \t]*\r?$", re.MULTILINE)
# Finds `Read` and `Bash(git log:*)` in `Read, Bash(git log:*)`.
_TOOL_LIST_ITEM = re.compile(r"[^\s,(]+(?:\([^)]*\))?")
# Splits `Bash(git log:*)` into the tool and the pattern.
_TOOL_RULE = re.compile(r"([^(]+)(?:\((.*)\))?")
_INHERITED_VALUES = frozenset(("", "inherit", "default"))
_MAX_DESCRIPTION_CHARS = 200


class ClaudePage(Struct, frozen=True):
    """A page: the configuration values of its agent or command, under `name`."""

    name: str
    values: JSON


def read_agent(stem: str, text: str) -> ClaudePage:
    """Read an agent; `stem` is the name of its file. Raises FrontmatterError: there is no head with its fields."""
    page = _split_page(text)
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
    if body := page.body.strip():
        values["prompt"] = body
    name = raw_name if isinstance(raw_name, str) and is_valid_name(raw_name) else stem
    return ClaudePage(name, values)


def read_command(name: str, text: str) -> ClaudePage:
    """Read a command; `name` is its path below the folder of commands. Raises FrontmatterError: it has no text."""
    page = _split_page(text)
    head, body = page.head, page.body.strip()
    if not body:
        raise FrontmatterError("there is no text below the head; it is the command's prompt", 1)
    first = next((line.strip("# \t") for line in body.splitlines() if line.strip("# \t")), "")
    hint = head.get("argument-hint")
    hint_text = _to_text(" ".join(f"[{each}]" for each in hint) if is_list(hint) else hint)
    values: JSON = {
        "template": body,
        "description": one_line(
            f"{_to_text(head.get('description')) or first} {hint_text}".strip(), _MAX_DESCRIPTION_CHARS
        ),
    }
    for key in ("model", "agent"):
        if (value := _to_text(head.get(key))) not in _INHERITED_VALUES:
            values[key] = value
    # Claude Code calls the command of `team/review.md` `/team:review`.
    return ClaudePage(name.replace("/", ":"), values)


def _split_page(text: str) -> Frontmatter:
    """Split a page; a head that is not YAML is parsed line by line, as `key: value`."""
    try:
        return split_frontmatter(text)
    except FrontmatterError:
        # Claude Code accepts heads that are not valid YAML, such as a description with an unquoted colon.
        parts = re.split(r"^---[ \t]*\r?$", text.removeprefix("\ufeff"), maxsplit=2, flags=re.MULTILINE)
        if len(parts) < 3 or parts[0].strip():
            raise
        return Frontmatter({key: value.strip("\"'") for key, value in _HEAD_LINE.findall(parts[1])}, parts[2])


def _to_text(value: Any) -> str:
    """Return a value of a head as text; "" for one that is neither text nor a number."""
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _merge_tools(tools: Any, denied_tools: Any) -> JSON:
    """Convert `tools` and `disallowedTools` to the keys `only` and `permission` of an agent."""
    rules: dict[str, Any] = {}
    values: JSON = {}
    names = _list_tool_names(tools)
    if names and "*" not in names:
        only: dict[str, None] = {}
        for name, pattern in map(_split_rule, names):
            permissions = _list_permissions(name)
            only |= dict.fromkeys(permissions)
            if pattern and permissions:
                # `Bash(git:*)` allows only what it names, so everything else of that tool is denied first; a plain
                # `Bash` beside it allows all.
                tool_rules = rules.setdefault(permissions[0], {} if name in names else {"*": "deny"})
                tool_rules[_convert_pattern(pattern)] = "allow"
        values["only"] = list(only)
    # An empty list means no tools; a missing key means all tools.
    elif is_list(tools):
        values["only"] = []
    for name, pattern in map(_split_rule, _list_tool_names(denied_tools)):
        for permission in _list_permissions(name):
            tool_rules = rules.setdefault(permission, {})
            tool_rules[_convert_pattern(pattern) if pattern else "*"] = "deny"
    return {**values, "permission": rules} if rules else values


def _list_tool_names(value: Any) -> list[str]:
    """Return the tools of a list, of a text such as `Read, Bash(git:*)`, or of an object that turns them on and off."""
    if is_list(value):
        return [each.strip() for each in value if isinstance(each, str) and each.strip()]
    if is_object(value):
        return [str(name) for name, is_on in value.items() if is_on is not False]
    return _TOOL_LIST_ITEM.findall(value) if isinstance(value, str) else []


def _split_rule(rule: str) -> tuple[str, str]:
    """Split `Bash(git:*)` into the tool and the pattern, which is "" for a plain `Bash`."""
    match = _TOOL_RULE.fullmatch(rule)
    return (match[1].strip(), (match[2] or "").strip()) if match else (rule, "")


def _list_permissions(name: str) -> tuple[str, ...]:
    """Return the permissions that a tool needs here; none: there is no such tool."""
    if name.startswith("mcp__"):
        server, _, tool = name.removeprefix("mcp__").partition("__")
        return (f"{server}_{tool or '*'}", "mcp")
    return _TOOL_PERMISSIONS.get(name, ())


def _convert_pattern(pattern: str) -> str:
    """Return a pattern of Claude Code's in our form: `git:*` is `git *`, `//etc/x` a path from the root."""
    converted = re.sub(r":\*$", " *", pattern).removeprefix("domain:")
    return converted[1:] if converted.startswith("//") else converted
