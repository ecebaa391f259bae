"""What the pattern of a rule means: the texts that it matches, the kinds of file
that it stands for.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from codeloop.kit.guarded_paths import is_protected, is_secret, needs_confirmation
from codeloop.kit.wildcard import expand_home, matches
from codeloop.schema.permission import (
    LOSS_PATTERN,
    PERMISSION_NAMES,
    REMOTE_PATTERN,
    TRAIT_PATTERNS,
    Action,
    PermissionRule,
)

_EDITING_TOOLS = ("write", "multiedit", "apply_patch", "patch")
TOOL_PERMISSIONS = {
    **dict.fromkeys(_EDITING_TOOLS, "edit"),
    "shell": "bash",
    "subagent": "task",
    "view": "read",
    "ls": "list",
    "fetch": "webfetch",
}
"""By the name of a tool, in our words and those of others: the permission that
decides about its calls.

A rule that denies such a tool, or asks about it, is one about that permission, since another tool
does the same. One that allows it does not allow the others.
"""
_PATH_PERMISSIONS = frozenset({"read", "edit", "list", "external_directory"})
_MCP_PREFIX = "mcp__"
_WILDCARD_CHARACTERS = frozenset("*?")
FILE_KINDS: dict[str, Callable[[str], bool]] = {
    "<secret>": is_secret,
    "<protected>": lambda path: is_protected(path) or needs_confirmation(path),
}
"""Rule patterns that stand for a kind of file. An ask for one counts only where the
file is known for certain.
"""


@lru_cache(maxsize=1024)
def find_meant_permission(name: str) -> str:
    """Return the permission that a rule is about whose permission is a name, of a tool as well, or
    a wildcard for such names. The names of other programs count in any spelling: `Bash`.
    """
    # Of the wildcards only those that mean a tool by its own name here: `s*` is not `shell`.
    is_edit = _WILDCARD_CHARACTERS.intersection(name) and any(
        matches(tool, name.lower()) for tool in _EDITING_TOOLS
    )
    if is_edit:
        return "edit"
    if name in PERMISSION_NAMES:
        return TOOL_PERMISSIONS.get(name, name)
    # Imported late: most rules are in our words.
    from codeloop.schema.tool_names import find_tools_by_alias

    if name.startswith(_MCP_PREFIX):
        # As the names of servers' tools are made.
        parts = (re.sub(r"[^\w*?-]+", "_", each, flags=re.ASCII) for each in name.split("__")[1:])
        return "_".join(filter(None, parts)) + "_*" * (name.count("__") == 1)
    tool = next(iter(find_tools_by_alias(name)), name)
    return TOOL_PERMISSIONS.get(tool, tool)


def restricts(rule: PermissionRule, permission: str) -> bool:
    """Return whether a rule that denies or asks is about a permission by a name of another program.
    One for tools of MCP servers (`mcp__*`) is never about our own permissions.
    """
    if rule.permission.startswith(_MCP_PREFIX) and permission in PERMISSION_NAMES:
        return False
    return matches(permission, find_meant_permission(rule.permission))


def find_last_match(
    permission: str, pattern: str, rules: Iterable[PermissionRule]
) -> PermissionRule | None:
    """Return the last rule whose permission and pattern wildcards both match, or None."""
    match = None
    for rule in rules:
        if matches(permission, rule.permission) and matches_text(rule, pattern):
            match = rule
    return match


def matches_text(rule: PermissionRule, text: str) -> bool:
    """Return whether a rule's pattern, or the kind of file that it names, matches a text;
    permissions do not count.
    """
    is_of_kind = FILE_KINDS.get(rule.pattern)
    return (
        is_of_kind(text)
        if is_of_kind
        else any(matches(text, each) for each in list_wildcards(rule))
    )


def list_wildcards(rule: PermissionRule) -> tuple[str, ...]:
    """Return the meaning of a rule's pattern, as wildcards of which one has to match;
    of a trait or kind of file `*`.

    `./src`, `src/` and `src` mean that folder with all that is in it, and `rm` means that command
    with any arguments; of a rule that allows, only what it says.
    """
    if (
        rule.pattern in TRAIT_PATTERNS
        or rule.pattern in FILE_KINDS
        or rule.pattern in {REMOTE_PATTERN, LOSS_PATTERN}
    ):
        return ("*",)
    return _expand_pattern(find_meant_permission(rule.permission), rule.pattern, rule.action)


@lru_cache(maxsize=4096)
def _expand_pattern(permission: str, pattern: str, action: Action) -> tuple[str, ...]:
    plain = expand_home(pattern)
    is_exact = not _WILDCARD_CHARACTERS.intersection(plain)
    if permission == "bash":
        return (f"{plain} *",) if is_exact and action != "allow" else (plain,)
    if permission not in _PATH_PERMISSIONS:
        return (plain,)
    path = re.sub(r"/{2,}", "/", re.sub(r"^(?:\./+)+", "", plain)) or "*"
    folder = path.rstrip("/")
    is_folder = folder and (path.endswith("/") or (is_exact and action != "allow"))
    return (folder, f"{folder}/*") if is_folder else (path,)
