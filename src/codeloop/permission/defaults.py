"""The built-in rules: of every agent, of each profile, of the built-in agents,
and the guards of sensitive files.

The rules of a user come after these and so win, except over the fixed rules and the guards, which
are lists of their own that every call has to pass too (`agent/calls/call_rules.py`
puts the lists together).

A pattern in angle brackets stands for a kind of file (FILE_KINDS in `rules.py`), for a trait of a
call, or for commands that act on other machines (TRAIT_PATTERNS and REMOTE_PATTERN
in `schema/permission.py`).
"""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from codeloop.kit.wildcard import expand_home
from codeloop.permission.rule_patterns import FILE_KINDS
from codeloop.schema.permission import (
    LOSS_PATTERN,
    OFFER_PATTERN,
    REMOTE_PATTERN,
    Action,
    PermissionRule,
    Profile,
    Ruleset,
)


def _make_rules(permission: str, action: Action, *patterns: str) -> list[PermissionRule]:
    return [
        PermissionRule(permission=permission, pattern=pattern, action=action)
        for pattern in patterns or ("*",)
    ]


def _make_rules_for_each(action: Action, permissions: str) -> Ruleset:
    return tuple(
        rule for permission in permissions.split() for rule in _make_rules(permission, action)
    )


_SECRET_FILE_RULES: Ruleset = tuple(_make_rules("read", "ask", "<secret>"))
# Files that are asked about even under a blanket rule;
# which files these are is in `kit/guarded_paths.py`.
_PROTECTED_FILE_RULES: Ruleset = tuple(_make_rules("edit", "ask", "<protected>"))


_READ_ONLY_BASH_RULES = (*_make_rules("bash", "deny"), *_make_rules("bash", "allow", "<read-only>"))
# Rules of the read-only agents, which rules for all agents can't loosen.
_READ_ONLY_AGENT_RULES: dict[str, Ruleset] = {
    "plan": (
        *_READ_ONLY_BASH_RULES,
        *_make_rules("edit", "deny"),
        *_make_rules("edit", "allow", ".codeloop/plans/*.md"),
    ),
    "explore": (*_READ_ONLY_BASH_RULES, *_make_rules("edit", "deny")),
}
# Built-in agents that only write a text.
_AGENTS_WITHOUT_TOOLS = frozenset({"compaction", "sampling", "summary", "title"})
# What these do, other tools do too, for fewer tokens in each request: `read` lists folders, `edit`
# takes several edits, `bash_output` ends commands and shows tasks, calls of one answer run
# together. A model is only told of them where a rule names them, and of `bash_output` once
# something runs in the background; all run if they are called.
_UNSENT_TOOL_RULES: Ruleset = tuple(
    rule
    for tool in (
        "multiedit",
        "batch",
        "list",
        "todoread",
        "bash_output",
        "bash_kill",
        "task_output",
    )
    for rule in _make_rules(tool, "deny", OFFER_PATTERN)
)
_EXPLORE_PERMISSIONS = "grep glob list webfetch websearch read"
_ALLOW_RULES = _make_rules_for_each("allow", "read grep glob list todowrite todoread skill task")
# By profile: the rules before (`_FIRST_RULES`) and after (`_LAST_RULES`) the rules
# that all profiles share.
_FIRST_RULES: dict[Profile, Ruleset] = {
    "ask": (*_make_rules("*", "ask"), *_ALLOW_RULES),
    "auto": tuple(_make_rules("*", "allow")),
    "read-only": (
        *_make_rules("*", "deny"),
        *_make_rules("*", "allow", "<read-only>"),
        *_ALLOW_RULES,
        *_make_rules_for_each("allow", "webfetch websearch"),
    ),
    "yolo": tuple(_make_rules("*", "allow")),
}
_LAST_RULES: dict[Profile, Ruleset] = {
    "ask": (
        *_make_rules("bash", "ask"),
        *_make_rules("bash", "allow", "<read-only>"),
        *_make_rules("edit", "ask"),
    ),
    "auto": (
        *_make_rules("bash", "ask"),
        *_make_rules("bash", "allow", "<read-only>", "<sandboxed>"),
        *_make_rules("bash", "ask", REMOTE_PATTERN, LOSS_PATTERN),
        *_make_rules("external_directory", "allow", "<sandboxed>"),
    ),
    "read-only": _READ_ONLY_AGENT_RULES["plan"],
    "yolo": (),
}


def make_base_rules(profile: Profile, scratch: Path, *readable: Path) -> Ruleset:
    """Return the rules of every agent under a profile.

    `scratch` (outputs of tools) and `readable` (skills,
    for example) are folders outside a workspace that may be
    read without a question; changing files there needs one.
    """
    # The last rule that matches wins, so an exception stands below the rule that
    # it is an exception from.
    return (
        *_FIRST_RULES[profile],
        *_make_rules("doom_loop", "ask"),
        *_make_rules("subagents", "ask"),
        *_make_rules("external_directory", "ask"),
        *_make_rules("external_directory", "allow", *_list_patterns_inside((scratch, *readable))),
        # Tools for talking to the user: only the agents that users talk to are allowed them,
        # in `make_agent_rules`.
        *_make_rules("question", "deny"),
        *_make_rules("plan_enter", "deny"),
        *_make_rules("plan_exit", "deny"),
        *_UNSENT_TOOL_RULES,
        *_make_rules("webfetch_private", "ask"),
        *_make_rules("sandbox", "ask"),
        *_make_rules("mcp_changed", "ask"),
        *_make_rules("mcp_sampling", "ask"),
        *_make_rules("mcp_write", "ask"),
        *_SECRET_FILE_RULES,
        *_make_rules("edit", "ask", "<protected>", *_list_patterns_inside(readable)),
        *_LAST_RULES[profile],
    )


def list_named_permissions() -> frozenset[str]:
    """Return the permissions that are named by the rules of the profile auto.
    No MCP tool may have such a name.

    Otherwise the rules for such a permission would decide about the tool.
    """
    return frozenset(rule.permission for rule in make_base_rules("auto", Path("/"))) - {"*"}


def make_fixed_rules(profile: Profile) -> Ruleset:
    """Return the rules of a profile that a user's rules can't loosen."""
    match profile:
        case "read-only":
            # `_FIRST_RULES` deny what they do not name. A call passes several lists of rules, and
            # for these permissions the other lists are enough, so this one allows them.
            decided_by_other_lists = (
                "external_directory webfetch_private doom_loop subagents "
                "question plan_enter plan_exit"
            )
            return (
                *_FIRST_RULES["read-only"],
                *_make_rules_for_each("allow", decided_by_other_lists),
                *_READ_ONLY_AGENT_RULES["plan"],
            )
        case "yolo":
            # Every question is answered with yes, so only a denial keeps commands in the sandbox.
            return (*_make_rules("*", "allow"), *_make_rules("sandbox", "deny"))
        case _:
            return ()


def make_fixed_agent_rules(agent: str) -> Ruleset:
    """Return the rules of a built-in agent that only a rule for this agent can loosen."""
    return (
        (*_make_rules("*", "allow"), *_READ_ONLY_AGENT_RULES[agent])
        if agent in _READ_ONLY_AGENT_RULES
        else ()
    )


# Permissions that `*` does not grant; a rule has to name them.
_EXPLICIT_PERMISSIONS = (
    "webfetch_private",
    "sandbox",
    "mcp_changed",
    "mcp_sampling",
    "mcp_write",
)


def make_guard_rules(*rulesets: Ruleset) -> Ruleset:
    """Return the rules for guarded files and permissions,
    which a call must pass in addition to the rules of its agent.

    `rulesets` are the user's own. The user is asked about secrets, protected files, private
    networks, commands outside the sandbox, and MCP servers that changed, use the model or write
    at places that they name. A user's
    `*: allow` or `edit: allow` does not cover those; a rule that names them does: `"read": {".env":
    "allow"}`, `"edit": {"<protected>": "allow"}`, or one for a permission of _EXPLICIT_PERMISSIONS.
    """
    rules = [rule for ruleset in rulesets for rule in ruleset]
    permissions = {rule.permission for rule in rules}
    questions = [
        rule
        for name in _EXPLICIT_PERMISSIONS
        if name not in permissions
        for rule in _make_rules(name, "ask")
    ]
    file_rules = (
        *_SECRET_FILE_RULES,
        *_PROTECTED_FILE_RULES,
        *_make_rules("edit", "allow", ".codeloop/plans/*.md"),
    )
    return (
        *_make_rules("*", "allow"),
        *questions,
        *file_rules,
        *filter(_mentions_guarded_file, rules),
    )


def _mentions_guarded_file(rule: PermissionRule) -> bool:
    """Return whether a rule names secrets or protected files,
    instead of matching them by a wildcard.
    """
    if rule.pattern in FILE_KINDS:
        return True
    # `config/*.env` names secrets, `*` does not: the fixed text around the wildcards
    # has to be a guarded name.
    return _is_guarded(expand_home(rule.pattern).replace("*", "x").replace("?", "x"))


@lru_cache(1_000)
def _is_guarded(path: str) -> bool:
    return any(kind(path) for kind in FILE_KINDS.values())


UNATTENDED_RULES: Ruleset = (
    *_make_rules("*", "allow"),
    *_make_rules("question", "deny"),
    *_make_rules("plan_exit", "deny"),
)
"""Added to a session's rules when no user can answer: tools that would wait
for one are not offered.
"""


def _list_patterns_inside(folders: Iterable[Path]) -> list[str]:
    return [pattern for folder in folders for pattern in (str(folder), f"{folder}/*")]


def make_agent_rules(agent: str) -> Ruleset:
    """Return the rules that a built-in agent adds to the base rules; none for any other name."""
    if agent in _AGENTS_WITHOUT_TOOLS:
        return tuple(_make_rules("*", "deny"))
    match agent:
        case "build":
            return (*_make_rules("question", "allow"), *_make_rules("plan_enter", "allow"))
        case "plan":
            return (
                *_make_rules("question", "allow"),
                *_make_rules("plan_exit", "allow"),
                *_make_rules("task", "deny", "general"),  # a subagent that may edit files
                *_READ_ONLY_AGENT_RULES["plan"],
            )
        case "general":
            return tuple(_make_rules("todowrite", "deny"))
        case "explore":
            return (
                *_make_rules("*", "deny"),
                *_make_rules_for_each("allow", _EXPLORE_PERMISSIONS),
                *_make_rules("list", "deny", OFFER_PATTERN),
                *_READ_ONLY_AGENT_RULES["explore"],
                *_SECRET_FILE_RULES,
            )
        case _:
            return ()
