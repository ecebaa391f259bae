"""What is allowed: layered rules, the last one that matches counts. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from codeloop.kit.wildcard import matches
from codeloop.schema.rules import Action, Need, Rule, Ruleset


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a need: the action, the patterns that still have to be asked for, and the rule that decided."""

    action: Action
    patterns: tuple[str, ...] = ()
    rule: Rule | None = None


ASK = Rule(permission="*", pattern="*", action="ask")


def last_match(permission: str, pattern: str, rules: Iterable[Rule]) -> Rule | None:
    """Give the last rule whose permission and pattern wildcards both match."""
    found = None
    for rule in rules:
        if matches(permission, rule.permission) and matches(pattern, expand_home(rule.pattern)):
            found = rule
    return found


def decide(need: Need, *rulesets: Ruleset, grants: Ruleset = ()) -> Verdict:
    """Decide a need: deny if any of its patterns is denied, else ask if any is asked for, else allow.

    Rulesets are read as one list, later ones after earlier ones. A pattern that no rule matches is asked for.
    A grant ("always") only ever turns a question into leave: it never lifts a denial. A need without patterns is asked for.
    """
    rules = [rule for ruleset in rulesets for rule in ruleset]
    if not need.patterns:
        return Verdict("ask", ("*",), ASK)
    asked: list[str] = []
    asking: Rule | None = None
    allowing: Rule | None = None
    for pattern in need.patterns:
        rule = last_match(need.permission, pattern, rules) or ASK
        if rule.action == "deny":
            return Verdict("deny", (pattern,), rule)
        if rule.action == "ask":
            granted = last_match(need.permission, pattern, grants)
            if granted is None:
                asked.append(pattern)
                asking = rule
                continue
        allowing = rule
    if asked:
        return Verdict("ask", tuple(asked), asking)
    return Verdict("allow", (), allowing)


def is_offered(permission: str, *rulesets: Ruleset) -> bool:
    """Tell whether a tool is worth offering: not when the last rule for its permission denies every pattern."""
    found = None
    for ruleset in rulesets:
        for rule in ruleset:
            if matches(permission, rule.permission):
                found = rule
    return not (found is not None and found.action == "deny" and found.pattern == "*")


def expand_home(pattern: str) -> str:
    """Give the pattern with a leading `~` or `$HOME` replaced by the home directory."""
    for start in ("~", "$HOME"):
        if pattern == start or pattern.startswith(start + "/"):
            return str(Path.home()) + pattern[len(start) :]
    return pattern
