"""Combines an untrusted project's rules with all others, so that they can only make a verdict stricter.

The last matching rule wins, so appending a project's `ask` would lift an earlier `deny`. What is appended instead is,
for each rule of the project, the part of every earlier rule that overlaps it, at the stricter action of the two.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from codeloop.kit.wildcard import expand_home, matches
from codeloop.schema.config import AgentConfig, Config
from codeloop.schema.limits import CONFIG_OVERLAPS
from codeloop.schema.permission import Action, PermissionRule, Ruleset, is_named

_STRICTNESS: dict[Action, int] = {"allow": 0, "ask": 1, "deny": 2}
_LARGEST = 16 * 1024
_WORK = 40_000  # steps, about a microsecond each: all agents of a project together
_RULE = 4  # steps of a rule that is added


class TooManyOverlaps(Exception):
    """Two wildcards overlap in more ways than are worth writing down."""


class Overlaps:
    """The computed overlaps, and the remaining budget of steps."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[str, ...]] = {}
        self._left = _WORK

    def find(self, one: str, other: str) -> tuple[str, ...]:
        """Return the overlap of two wildcards (see `overlap`). Raises TooManyOverlaps."""
        if other in {one, "*"}:
            return (one,)
        overlap_known = self._known.get((one, other))
        if overlap_known is None:
            overlap_known = self._known[one, other] = overlap(one, other, self.spend)
        return overlap_known

    def spend(self, steps: int) -> None:
        """Use up `steps` of the budget. Raises TooManyOverlaps when none are left."""
        self._left -= steps
        if self._left < 0:
            raise TooManyOverlaps


def build_rules(
    config: Config, agent: str, base: Ruleset, built_in: Ruleset = (), overlaps: Overlaps | None = None
) -> Ruleset:
    """Return the rules that follow `base` for an agent: built-in ones, the configuration's, its own configured ones.

    The restrictions of an untrusted project end them; with them no verdict on `base` and these rules is looser.
    `overlaps`: what the agents of a project have in common.
    """
    own = config.agent.get(agent, AgentConfig())
    rules = (*built_in, *config.permission, *own.permission)
    if own.only is not None:
        rules = (*rules, *_limit((*base, *rules), own.only))
    return (*rules, *restricting((*base, *rules), (*config.restrictions, *own.restrictions), overlaps))


_BESIDE_TOOLS = [
    *("external_directory", "webfetch_private", "sandbox", "mcp_changed", "mcp_sampling", "doom_loop", "subagents")
]
"""Permissions that calls of any tool may need besides the tool's own."""


def _limit(rules: Sequence[PermissionRule], only: Iterable[str]) -> Iterator[PermissionRule]:
    """Yield the rules that follow `rules` so that all but some permissions, whose verdicts stay, is denied.

    A name in `only` may be a wildcard.
    """
    names = dict.fromkeys((*only, *_BESIDE_TOOLS))
    yield PermissionRule(permission="*", pattern="*", action="deny")
    for rule in rules:
        for name in names:
            if matches(name, rule.permission):
                yield _replace_pattern(rule, name, rule.pattern, rule.action)
            elif matches(rule.permission, name):
                yield rule


def restricting(base: Ruleset, restrictions: Sequence[PermissionRule], overlaps: Overlaps | None = None) -> Ruleset:
    """Return the rules to append to `base` so that the stricter verdict of both holds for every permission and pattern.

    In `restrictions` too the last match counts; an `allow` there, or no match, leaves the verdict of `base` as it is.
    """
    rules: list[PermissionRule] = []
    overlaps = overlaps or Overlaps()
    is_narrowed = False
    for each in restrictions:
        rule = _of_all(each, is_narrowed=is_narrowed)
        if rule.action == "deny":
            rules.append(rule)
        elif rule.action == "ask" or (is_narrowed and not is_named(rule.pattern)):
            rules.extend(_stricter(base, rule, overlaps))
        is_narrowed = is_narrowed or rule.action != "allow"
    return tuple(rules)


def _of_all(rule: PermissionRule, *, is_narrowed: bool) -> PermissionRule:
    """Widen an `ask` rule for a trait or kind of file to everything, since it comes after the other rules.

    Where it would lift a stricter rule of the project it is a denial.
    """
    if not is_named(rule.pattern) or rule.action != "ask":
        return rule
    return (
        _replace_pattern(rule, rule.permission, rule.pattern, "deny")
        if is_narrowed
        else _replace_pattern(rule, rule.permission, "*", "ask")
    )


def _stricter(base: Ruleset, rule: PermissionRule, overlaps: Overlaps) -> list[PermissionRule]:
    """Return `base` within what the rule matches, each part at the stricter action. What nothing matches is asked."""
    rules = [_replace_pattern(rule, rule.permission, rule.pattern, "ask")]
    try:
        for other in base:
            permissions = overlaps.find(rule.permission, other.permission)
            patterns = _intersect(rule.pattern, other, overlaps) if permissions else ()
            overlaps.spend(1 + _RULE * len(permissions) * len(patterns))
            action = max(rule.action, other.action, key=_STRICTNESS.__getitem__)
            parts = [
                _replace_pattern(rule, permission, pattern, action)
                for permission in permissions
                for pattern in patterns
            ]
            is_whole = permissions == (rule.permission,) and patterns == (expand_home(rule.pattern),)
            rules = parts if is_whole else rules + parts
    except TooManyOverlaps:
        return [_replace_pattern(rule, rule.permission, rule.pattern, "deny")] if rule.action == "ask" else []
    return rules


def _intersect(pattern: str, other: PermissionRule, overlaps: Overlaps) -> tuple[str, ...]:
    """Return patterns that match what both match. No pattern can express "those of these that have the trait".

    So a rule about such a kind that asks or denies is taken to be about all of them, and one that allows about none.
    """
    if is_named(other.pattern) and pattern not in {"*", other.pattern}:
        return () if other.action == "allow" else (expand_home(pattern),)
    return overlaps.find(expand_home(pattern), expand_home(other.pattern))


def _replace_pattern(rule: PermissionRule, permission: str, pattern: str, action: Action) -> PermissionRule:
    if (permission, pattern, action) == (rule.permission, rule.pattern, rule.action):
        return rule
    return PermissionRule(permission=permission, pattern=pattern, action=action)


def overlap(one: str, other: str, spend: Callable[[int], None] = lambda _: None) -> tuple[str, ...]:
    """Return wildcards that together match exactly the texts that both wildcards match. Raises TooManyOverlaps.

    `spend` is told the number of steps before they are taken.
    """
    if other in {one, "*"}:
        return (one,)
    if one == "*":
        return (other,)
    overlaps: set[str] = set()
    for pattern in _spell_out_ending(one):
        for right in _spell_out_ending(other):
            overlaps |= _overlap_plain(pattern, right, spend)
    return tuple(sorted(_restore_stars(overlaps)))


def _spell_out_ending(pattern: str) -> tuple[str, ...]:
    """Spell out that a final ` *` may be missing altogether."""
    return (pattern, pattern[:-2]) if pattern.endswith(" *") else (pattern,)


def _restore_stars(plain: Iterable[str]) -> set[str]:
    """Undo `_spell_out_ending`: two final stars keep a final ` *` from also matching without it."""
    plain = set(plain)
    patterns: set[str] = set()
    for pattern in plain:
        if pattern.endswith(" *"):
            patterns.add(pattern if pattern[:-2] in plain else pattern + "*")
        elif pattern + " *" not in plain:
            patterns.add(pattern)
    return patterns


def _differ(one: str, other: str) -> bool:
    """Return whether two wildcards begin or end with different letters: then no text matches both."""
    for left, right in ((one, other), (one[::-1], other[::-1])):
        first = next((at for at, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]), None)
        if first is not None and not {"*", "?"} & {*left[: first + 1], *right[: first + 1]}:
            return True
    return False


def _overlap_plain(one: str, other: str, spend: Callable[[int], None]) -> set[str]:
    """Return the overlap of two wildcards in which a star is only a star, by dynamic programming from their ends."""
    if len(one) * len(other) > _LARGEST:
        raise TooManyOverlaps
    if _differ(one, other):
        return set()
    below: list[set[str]] = []
    for i in range(len(one), -1, -1):
        row: list[set[str]] = [set() for _ in range(len(other) + 1)]
        spend(len(other) + sum(map(len, below)) * (len(one) + len(other)) // 64)
        for j in range(len(other), -1, -1):
            row[j] = _cell(one[i:], other[j:], below, row, j)
            if len(row[j]) > CONFIG_OVERLAPS.value:
                raise TooManyOverlaps
        below = row
    return below[0]


def _cell(one: str, other: str, below: list[set[str]], row: list[set[str]], j: int) -> set[str]:
    """Return one cell of the table in `_overlap_plain`.

    `below[j]` is the overlap without the first character of `one`, `row[j + 1]` without that of `other`.
    """
    if not one or not other:
        return {""} if not (one + other).strip("*") else set()
    first, second = one[0], other[0]
    if first == second == "*":
        return {_add_star(rest) for rest in below[j] | row[j + 1]}
    if first == "*":
        return below[j] | {second + rest for rest in row[j + 1]}
    if second == "*":
        return row[j + 1] | {first + rest for rest in below[j]}
    if first in {"?", second} or second == "?":
        return {(second if first == "?" else first) + rest for rest in below[j + 1]}
    return set()


def _add_star(rest: str) -> str:
    return rest if rest.startswith("*") else "*" + rest
