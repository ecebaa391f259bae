"""The default rules of every agent; the user's own rules come after them and so win."""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from codeloop.kit.wildcard import expand_home
from codeloop.permission.rules import KINDS
from codeloop.schema.permission import REMOTE, Action, PermissionRule, Profile, Ruleset


def _rules(permission: str, action: Action, *patterns: str) -> list[PermissionRule]:
    return [PermissionRule(permission=permission, pattern=pattern, action=action) for pattern in patterns or ("*",)]


def _rules_for_each(action: Action, permissions: str) -> Ruleset:
    return tuple(rule for permission in permissions.split() for rule in _rules(permission, action))


SECRETS: Ruleset = tuple(_rules("read", "ask", "<secret>"))
PROTECTED: Ruleset = tuple(_rules("edit", "ask", "<protected>"))
"""Paths that need permission even under a blanket rule; the rows are in `kit/guarded_paths.py`."""


_LOOKS = (*_rules("bash", "deny"), *_rules("bash", "allow", "<read-only>"))
_FIRM: dict[str, Ruleset] = {
    "plan": (*_LOOKS, *_rules("edit", "deny"), *_rules("edit", "allow", ".codeloop/plans/*.md")),
    "explore": (*_LOOKS, *_rules("edit", "deny")),
}
"""Permissions that read-only agents never have, whatever the rules for all agents allow."""
_FREE = _rules_for_each("allow", "read grep glob list todowrite skill task")
_STARTS: dict[Profile, Ruleset] = {
    "ask": (*_rules("*", "ask"), *_FREE),
    "auto": tuple(_rules("*", "allow")),
    "plan": (
        *_rules("*", "deny"),
        *_rules("*", "allow", "<read-only>"),
        *_FREE,
        *_rules_for_each("allow", "webfetch websearch"),
    ),
    "yolo": tuple(_rules("*", "allow")),
}
_ENDS: dict[Profile, Ruleset] = {
    "ask": (*_rules("bash", "ask"), *_rules("bash", "allow", "<read-only>"), *_rules("edit", "ask")),
    "auto": (
        *_rules("bash", "ask"),
        *_rules("bash", "allow", "<read-only>", "<sandboxed>"),
        *_rules("bash", "ask", REMOTE),
        *_rules("external_directory", "allow", "<sandboxed>"),
    ),
    "plan": _FIRM["plan"],
    "yolo": (),
}
"""A profile's rules before and after those that all profiles share."""


def base_rules(profile: Profile, scratch: Path, *readable: Path) -> Ruleset:
    """Return the rules of every agent under a profile.

    The tools multiedit, batch and todoread cost more tokens than they save: parallel calls and the conversation itself
    do the same. They are not offered unless the user allows them.
    `scratch` (outputs of tools) and `readable` (skills, for example) are folders outside a workspace that may be
    read without a question; changing files there needs one.
    """
    return (
        *_STARTS[profile],
        *_rules("doom_loop", "ask"),
        *_rules("subagents", "ask"),
        *_rules("external_directory", "ask"),
        *_rules("external_directory", "allow", *_patterns_inside((scratch, *readable))),
        *_rules("question", "deny"),
        *_rules("plan_enter", "deny"),
        *_rules("plan_exit", "deny"),
        *_rules("multiedit", "deny"),
        *_rules("batch", "deny"),
        *_rules("todoread", "deny"),
        *_rules("webfetch_private", "ask"),
        *_rules("sandbox", "ask"),
        *_rules("mcp_changed", "ask"),
        *_rules("mcp_sampling", "ask"),
        *SECRETS,
        *_rules("edit", "ask", "<protected>", *_patterns_inside(readable)),
        *_ENDS[profile],
    )


def list_named_permissions() -> frozenset[str]:
    """Return the permissions that our rules name: a server's tool of such a name would get its rules."""
    return frozenset(rule.permission for rule in base_rules("auto", Path("/"))) - {"*"}


def firm_rules(profile: Profile) -> Ruleset:
    """Return the rules of a profile that hold whatever a user's rules allow."""
    match profile:
        case "plan":
            elsewhere = "external_directory webfetch_private doom_loop subagents question plan_enter plan_exit"
            return (*_STARTS["plan"], *_rules_for_each("allow", elsewhere), *_FIRM["plan"])
        case "yolo":
            return (*_rules("*", "allow"), *_rules("sandbox", "deny"))
        case _:
            return ()


def firm_agent_rules(agent: str) -> Ruleset:
    """Return the rules of a built-in agent that hold unless a rule of its own allows more."""
    return (*_rules("*", "allow"), *_FIRM[agent]) if agent in _FIRM else ()


NAMED = ("webfetch_private", "sandbox", "mcp_changed", "mcp_sampling")
"""The permissions that only a rule of their own grants."""


def guards(*rulesets: Ruleset) -> Ruleset:
    """Return the rules that a call must pass in addition to its own.

    Secrets, protected files, private networks, leaving the sandbox, changed MCP servers and those that use the model
    are asked about. A user's `*: allow` or
    `edit: allow` does not mean those; a rule that names them does: `"read": {".env": "allow"}`,
    `"edit": {"<protected>": "allow"}`, any rule for `webfetch_private`, `sandbox` or a server's changes and sampling.
    """
    rules = [rule for ruleset in rulesets for rule in ruleset]
    permissions = {rule.permission for rule in rules}
    asked = [rule for name in NAMED if name not in permissions for rule in _rules(name, "ask")]
    kept = (*SECRETS, *PROTECTED, *_rules("edit", "allow", ".codeloop/plans/*.md"))
    return (*_rules("*", "allow"), *asked, *kept, *filter(_names_guarded, rules))


def _names_guarded(rule: PermissionRule) -> bool:
    """Return whether a rule names secrets or protected files, instead of matching them by a wildcard."""
    if rule.pattern in KINDS:
        return True
    return _is_guarded(expand_home(rule.pattern).replace("*", "x").replace("?", "x"))


@lru_cache(1_000)
def _is_guarded(path: str) -> bool:
    return any(kind(path) for kind in KINDS.values())


UNATTENDED: Ruleset = (*_rules("*", "allow"), *_rules("question", "deny"), *_rules("plan_exit", "deny"))
"""Added to a session's rules when nobody can answer: tools that would wait for the user are not offered."""


def _patterns_inside(folders: Iterable[Path]) -> list[str]:
    return [pattern for folder in folders for pattern in (str(folder), f"{folder}/*")]


def agent_rules(agent: str) -> Ruleset:
    """Return the rules that a built-in agent adds to the base rules; none for any other name."""
    if agent in READERS:
        return tuple(_rules("*", "deny"))
    match agent:
        case "build":
            return (*_rules("question", "allow"), *_rules("plan_enter", "allow"))
        case "plan":
            return (
                *_rules("question", "allow"),
                *_rules("plan_exit", "allow"),
                *_rules("task", "deny", "general"),
                *_FIRM["plan"],
            )
        case "general":
            return tuple(_rules("todowrite", "deny"))
        case "explore":
            return (*_rules("*", "deny"), *_rules_for_each("allow", EXPLORES), *_FIRM["explore"], *SECRETS)
        case _:
            return ()


READERS = frozenset({"compaction", "sampling", "summary", "title"})
EXPLORES = "grep glob list webfetch websearch read"
