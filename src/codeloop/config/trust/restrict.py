"""Putting an untrusted project's rules together with everybody else's, so that they can only make a verdict stricter.

The last matching rule wins, so appending a project's `ask` would lift an earlier `deny`. What is appended instead is,
for each rule of the project, the part of every earlier rule that overlaps it, at the stricter action of the two.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from codeloop.kit.wildcard import expand_home
from codeloop.schema.config import AgentConfig, Config
from codeloop.schema.limits import CONFIG_OVERLAPS
from codeloop.schema.permission import Action, PermissionRule, Ruleset

_STRICTNESS: dict[Action, int] = {"allow": 0, "ask": 1, "deny": 2}
_LARGEST = 16 * 1024


class TooManyOverlaps(Exception):
    """Two wildcards overlap in more ways than are worth writing down."""


def configured_rules(config: Config, agent: str, base: Ruleset, built_in: Ruleset = ()) -> Ruleset:
    """Return the rules that follow `base` for an agent: built-in ones, the configuration's, its own configured ones.

    The restrictions of an untrusted project end them; with them no verdict on `base` and these rules is looser.
    """
    own = config.agent.get(agent, AgentConfig())
    rules = (*built_in, *config.permission, *own.permission)
    return (*rules, *restricting((*base, *rules), (*config.restrictions, *own.restrictions)))


def restricting(base: Ruleset, restrictions: Sequence[PermissionRule]) -> Ruleset:
    """Return the rules to append to `base` so that the stricter verdict of both holds for every permission and pattern.

    In `restrictions` too the last match counts; an `allow` there, or no match, leaves the verdict of `base` as it is.
    """
    rules: list[PermissionRule] = []
    is_narrowed = False
    for rule in restrictions:
        if rule.action == "deny":
            rules.append(rule)
        elif rule.action == "ask" or is_narrowed:
            rules.extend(_stricter(base, rule))
        is_narrowed = is_narrowed or rule.action != "allow"
    return tuple(rules)


def _stricter(base: Ruleset, rule: PermissionRule) -> list[PermissionRule]:
    """Return `base` within what the rule matches, each part at the stricter action. What nothing matches is asked."""
    found = [_like(rule, rule.permission, rule.pattern, "ask")]
    try:
        for other in base:
            permissions = overlap(rule.permission, other.permission)
            patterns = overlap(expand_home(rule.pattern), expand_home(other.pattern))
            action = max(rule.action, other.action, key=_STRICTNESS.__getitem__)
            parts = [_like(rule, permission, pattern, action) for permission in permissions for pattern in patterns]
            is_whole = permissions == (rule.permission,) and patterns == (expand_home(rule.pattern),)
            found = parts if is_whole else found + parts
    except TooManyOverlaps:
        return [_like(rule, rule.permission, rule.pattern, "deny")] if rule.action == "ask" else []
    return found


def _like(rule: PermissionRule, permission: str, pattern: str, action: Action) -> PermissionRule:
    if (permission, pattern, action) == (rule.permission, rule.pattern, rule.action):
        return rule
    return PermissionRule(permission=permission, pattern=pattern, action=action)


@lru_cache(maxsize=1024)
def overlap(one: str, other: str) -> tuple[str, ...]:
    """Return wildcards that together match exactly the texts that both wildcards match. Raises TooManyOverlaps."""
    if other in {one, "*"}:
        return (one,)
    if one == "*":
        return (other,)
    found: set[str] = set()
    for left in _plain(one):
        for right in _plain(other):
            found |= _meet(left, right)
    return tuple(sorted(_written(found)))


def _plain(pattern: str) -> tuple[str, ...]:
    """Spell out that a final ` *` may be missing altogether."""
    return (pattern, pattern[:-2]) if pattern.endswith(" *") else (pattern,)


def _written(plain: Iterable[str]) -> set[str]:
    """Undo `_plain`: two final stars keep a final ` *` from also matching without it."""
    plain = set(plain)
    found: set[str] = set()
    for pattern in plain:
        if pattern.endswith(" *"):
            found.add(pattern if pattern[:-2] in plain else pattern + "*")
        elif pattern + " *" not in plain:
            found.add(pattern)
    return found


def _meet(one: str, other: str) -> set[str]:
    """Return the overlap of two wildcards in which a star is only a star, by dynamic programming from their ends."""
    if len(one) * len(other) > _LARGEST:
        raise TooManyOverlaps
    below: list[set[str]] = []
    for i in range(len(one), -1, -1):
        row: list[set[str]] = [set() for _ in range(len(other) + 1)]
        for j in range(len(other), -1, -1):
            row[j] = _cell(one[i:], other[j:], below, row, j)
            if len(row[j]) > CONFIG_OVERLAPS.value:
                raise TooManyOverlaps
        below = row
    return below[0]


def _cell(one: str, other: str, below: list[set[str]], row: list[set[str]], j: int) -> set[str]:
    """`below[j]` is the overlap without the first character of `one`, `row[j + 1]` without that of `other`."""
    if not one or not other:
        return {""} if not (one + other).strip("*") else set()
    first, second = one[0], other[0]
    if first == second == "*":
        return {_starred(rest) for rest in below[j] | row[j + 1]}
    if first == "*":
        return below[j] | {second + rest for rest in row[j + 1]}
    if second == "*":
        return row[j + 1] | {first + rest for rest in below[j]}
    if first in {"?", second} or second == "?":
        return {(second if first == "?" else first) + rest for rest in below[j + 1]}
    return set()


def _starred(rest: str) -> str:
    return rest if rest.startswith("*") else "*" + rest
