"""The rules that every agent starts from; a person's own rules come after them and so win."""

from collections.abc import Iterable
from pathlib import Path

from codeloop.kit.wildcard import expand_home
from codeloop.permission.rules import KINDS
from codeloop.schema.permission import Action, PermissionRule, Ruleset


def _rules(permission: str, action: Action, *patterns: str) -> list[PermissionRule]:
    return [PermissionRule(permission=permission, pattern=pattern, action=action) for pattern in patterns or ("*",)]


SECRETS: Ruleset = tuple(_rules("read", "ask", "<secret>"))
PROTECTED: Ruleset = tuple(_rules("edit", "ask", "<protected>"))
"""What is asked about whatever a blanket rule allows; the rows are in `kit/guarded_paths.py`."""


def base_rules(scratch: Path, *readable: Path) -> Ruleset:
    """Return the rules of every agent.

    The tools multiedit, batch and todoread cost more tokens than they save: parallel calls and the conversation itself
    do the same. They are not offered unless a person allows them.
    `scratch` (outputs of tools) and `readable` (skills, say) are folders outside a workspace that need no question;
    to change what is in a readable one does.
    """
    return (
        *_rules("*", "allow"),
        *_rules("doom_loop", "ask"),
        *_rules("external_directory", "ask"),
        *_rules("external_directory", "allow", *_inside((scratch, *readable))),
        *_rules("question", "deny"),
        *_rules("plan_enter", "deny"),
        *_rules("plan_exit", "deny"),
        *_rules("multiedit", "deny"),
        *_rules("batch", "deny"),
        *_rules("todoread", "deny"),
        *_rules("webfetch_private", "ask"),
        *_rules("read", "allow"),
        *SECRETS,
        *_rules("edit", "ask", "<protected>", *_inside(readable)),
    )


def guards(*rulesets: Ruleset) -> Ruleset:
    """Return what a call must pass beside its own rules: secrets, protected files, private networks are asked about.

    A person's `*: allow` or `edit: allow` does not mean those; a rule that names them does: `"read": {".env":
    "allow"}`,
    `"edit": {"<protected>": "allow"}`, any rule for `webfetch_private`.
    """
    given = [rule for ruleset in rulesets for rule in ruleset]
    asked = [] if any(rule.permission == "webfetch_private" for rule in given) else _rules("webfetch_private", "ask")
    return (*_rules("*", "allow"), *asked, *SECRETS, *PROTECTED, *filter(_names_guarded, given))


def _names_guarded(rule: PermissionRule) -> bool:
    """Return whether a rule is about secrets or protected files and not just about whatever is there."""
    if rule.pattern in KINDS:
        return True
    path = expand_home(rule.pattern).replace("*", "x").replace("?", "x")
    return any(kind(path) for kind in KINDS.values())


UNATTENDED: Ruleset = (*_rules("*", "allow"), *_rules("question", "deny"), *_rules("plan_exit", "deny"))
"""Added to a session's rules when nobody can answer: what would wait for a person is not offered to the model."""


def _inside(folders: Iterable[Path]) -> list[str]:
    return [pattern for folder in folders for pattern in (str(folder), f"{folder}/*")]


def agent_rules(agent: str) -> Ruleset:
    """Return what a built-in agent adds to the base rules; nothing for any other name."""
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
                *_rules("edit", "deny"),
                *_rules("edit", "allow", ".codeloop/plans/*.md"),
            )
        case "general":
            return tuple(_rules("todowrite", "deny"))
        case "explore":
            return (*_rules("*", "deny"), *(rule for name in EXPLORES for rule in _rules(name, "allow")), *SECRETS)
        case _:
            return ()


READERS = frozenset({"compaction", "summary", "title"})
EXPLORES = ("grep", "glob", "list", "bash", "webfetch", "websearch", "read")
