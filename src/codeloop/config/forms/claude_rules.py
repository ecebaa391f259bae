"""Converts permission rules of Claude Code (`Bash(git log:*)`) to ours. Pure."""

import re
from collections.abc import Iterator
from typing import Any

from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.permission import Action
from codeloop.schema.wire import JSON

RULE_LISTS: tuple[Action, ...] = ("allow", "ask", "deny")
"""The lists of rules in a settings file's `permissions`; a later one counts more."""
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
# Finds `Read` and `Bash(git log:*)` in `Read, Bash(git log:*)`.
_TOOL_LIST_ITEM = r"[^\s,(]+(?:\([^)]*\))?"
# Splits `Bash(git log:*)` into the tool and the pattern.
_TOOL_RULE = r"([^(]+)(?:\((.*)\))?"
_SETTINGS_KEYS = frozenset(
    (*RULE_LISTS, "defaultMode", "additionalDirectories", "disableBypassPermissionsMode")
)


def is_settings_form(value: Any) -> bool:
    """Return whether a value has the form of `permissions` in Claude Code's settings:
    lists of rules by action.
    """
    return is_object(value) and bool(value) and value.keys() <= _SETTINGS_KEYS


def read_settings_rules(permissions: JSON) -> Iterator[tuple[JSON, tuple[str, int]]]:
    """Yield the rules of a settings file's `permissions`,
    each with its list and its index there.
    """
    for action in RULE_LISTS:
        rules = permissions.get(action)
        for index, text in enumerate(rules if is_list(rules) else ()):
            if isinstance(text, str):
                tool, pattern = split_rule(text.strip())
                # Of any server: our form of it would be about our own permissions, too.
                is_any = re.match(r"mcp__[^_]*\*", tool)
                for permission in [tool] if is_any else list_permissions(tool):
                    rule = {
                        "permission": permission,
                        "pattern": convert_pattern(pattern) or "*",
                        "action": action,
                    }
                    yield rule, (action, index)


def list_tool_names(value: Any) -> list[str]:
    """Return the tools of a list, of a text such as `Read, Bash(git:*)`,
    or of an object that turns them on and off.
    """
    if is_list(value):
        return [each.strip() for each in value if isinstance(each, str) and each.strip()]
    if is_object(value):
        return [str(name) for name, is_on in value.items() if is_on is not False]
    return re.findall(_TOOL_LIST_ITEM, value) if isinstance(value, str) else []


def split_rule(rule: str) -> tuple[str, str]:
    """Split `Bash(git:*)` into the tool and the pattern, which is "" for a plain `Bash`."""
    match = re.fullmatch(_TOOL_RULE, rule)
    return (match[1].strip(), (match[2] or "").strip()) if match else (rule, "")


def list_permissions(name: str) -> tuple[str, ...]:
    """Return the permissions that a tool needs here; none: there is no such tool."""
    if name.startswith("mcp__"):
        server, _, tool = name.removeprefix("mcp__").partition("__")
        return (f"{server}_{tool or '*'}", "mcp")
    return _TOOL_PERMISSIONS.get(name, ())


def convert_pattern(pattern: str) -> str:
    """Return a pattern of Claude Code's in our form: `git:*` is `git *`,
    `//etc/x` a path from the root.
    """
    converted = re.sub(r":\*$", " *", pattern).removeprefix("domain:")
    return converted[1:] if converted.startswith("//") else converted
