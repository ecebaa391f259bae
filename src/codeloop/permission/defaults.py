"""The rules that every agent starts from; a person's own rules come after them and so win."""

from collections.abc import Iterable
from pathlib import Path

from codeloop.schema.permission import Action, PermissionRule, Ruleset

GIT_FOLDERS = (".git", ".git/*", "*/.git", "*/.git/*")


def _rules(permission: str, action: Action, *patterns: str) -> list[PermissionRule]:
    return [PermissionRule(permission=permission, pattern=pattern, action=action) for pattern in patterns or ("*",)]


SECRETS = (*_rules("read", "ask", "*.env", "*.env.*"), *_rules("read", "allow", "*.env.example"))


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
        *_rules("edit", "ask", *GIT_FOLDERS, *_inside(readable)),
    )


def guards(*rulesets: Ruleset) -> Ruleset:
    """Return what a call must pass beside its own rules: reaching into private networks is asked about.

    A person's `*: allow` does not mean that; a rule that names `webfetch_private` does.
    """
    if any(rule.permission == "webfetch_private" for ruleset in rulesets for rule in ruleset):
        return ()
    return (*_rules("*", "allow"), *_rules("webfetch_private", "ask"))


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
