"""Makes the permission rules of an untrusted project restrictions: they can only make a decision stricter.

The last matching rule wins, so appending a project's `ask` would lift an earlier `deny`. Instead, for each rule of the
project, the overlap with every earlier rule is appended, with the stricter action of the two.
"""

from collections.abc import Sequence

from codeloop.kit.wildcard import TooManyOverlaps, expand_home, intersect_wildcards
from codeloop.schema.limits import CONFIG_OVERLAPS
from codeloop.schema.permission import Action, PermissionRule, Ruleset, is_category_pattern

_STRICTNESS: dict[Action, int] = {"allow": 0, "ask": 1, "deny": 2}
# Steps, of about a microsecond each, for all agents of a project together. They bound the time
# that the rules of a project, which the user has not seen, may take.
_MAX_STEPS = 40_000
# Steps that each added rule counts for.
_STEPS_PER_RULE = 4


class OverlapCache:
    """A cache of the overlaps of wildcards, which computes them within a budget of steps."""

    def __init__(self) -> None:
        self._cache: dict[tuple[str, str], tuple[str, ...]] = {}
        self._budget = _MAX_STEPS

    def find(self, one: str, other: str) -> tuple[str, ...]:
        """Return the overlap of two wildcards (see `intersect_wildcards`). Raises TooManyOverlaps."""
        if other in {one, "*"}:
            return (one,)
        patterns = self._cache.get((one, other))
        if patterns is None:
            patterns = self._cache[one, other] = intersect_wildcards(one, other, CONFIG_OVERLAPS.value, self.spend)
        return patterns

    def spend(self, steps: int) -> None:
        """Use up `steps` of the budget. Raises TooManyOverlaps when none are left."""
        self._budget -= steps
        if self._budget < 0:
            raise TooManyOverlaps


def restrict_rules(
    base: Ruleset, restrictions: Sequence[PermissionRule], overlaps: OverlapCache | None = None
) -> Ruleset:
    """Return the rules to append to `base` so that of both decisions the stricter one holds, for all patterns.

    The last matching rule of `restrictions` counts; if it is `allow`, or none matches, the decision of `base` holds.
    """
    rules: list[PermissionRule] = []
    overlaps = overlaps or OverlapCache()
    is_narrowed = False
    for each in restrictions:
        rule = _widen_rule(each, is_narrowed=is_narrowed)
        if rule.action == "deny":
            rules.append(rule)
        elif rule.action == "ask" or (is_narrowed and not is_category_pattern(rule.pattern)):
            rules.extend(_overlap_with_base(base, rule, overlaps))
        is_narrowed = is_narrowed or rule.action != "allow"
    return tuple(rules)


def _widen_rule(rule: PermissionRule, *, is_narrowed: bool) -> PermissionRule:
    """Widen an `ask` rule about a trait or a kind of file to all patterns; after another restriction, deny instead.

    As the last rule, it would lift denials of `base` about files that have the trait, and no pattern expresses these
    (see `_intersect`); for all patterns, the overlaps with `base` are known. But then it would lift the project's own
    earlier restrictions, which a denial can't do.
    """
    if not is_category_pattern(rule.pattern) or rule.action != "ask":
        return rule
    return (
        change_rule(rule, rule.permission, rule.pattern, "deny")
        if is_narrowed
        else change_rule(rule, rule.permission, "*", "ask")
    )


def _overlap_with_base(base: Ruleset, rule: PermissionRule, overlaps: OverlapCache) -> list[PermissionRule]:
    """Return the overlaps of a rule with `base`, each with the stricter action; the rest of the rule is asked about."""
    rules = [change_rule(rule, rule.permission, rule.pattern, "ask")]
    try:
        for other in base:
            permissions = overlaps.find(rule.permission, other.permission)
            patterns = _intersect(rule.pattern, other, overlaps) if permissions else ()
            overlaps.spend(1 + _STEPS_PER_RULE * len(permissions) * len(patterns))
            action = max(rule.action, other.action, key=_STRICTNESS.__getitem__)
            parts = [
                change_rule(rule, permission, pattern, action) for permission in permissions for pattern in patterns
            ]
            covers_rule = permissions == (rule.permission,) and patterns == (expand_home(rule.pattern),)
            rules = parts if covers_rule else rules + parts
    except TooManyOverlaps:
        return [change_rule(rule, rule.permission, rule.pattern, "deny")] if rule.action == "ask" else []
    return rules


def _intersect(pattern: str, other: PermissionRule, overlaps: OverlapCache) -> tuple[str, ...]:
    """Return patterns for the overlap of `pattern` and the pattern of the other rule.

    No pattern can express "those of these that have the trait". So a rule about a trait that asks or denies is taken
    to be about all of them, and a rule that allows about none.
    """
    if is_category_pattern(other.pattern) and pattern not in {"*", other.pattern}:
        return () if other.action == "allow" else (expand_home(pattern),)
    return overlaps.find(expand_home(pattern), expand_home(other.pattern))


def change_rule(rule: PermissionRule, permission: str, pattern: str, action: Action) -> PermissionRule:
    """Return a copy of a rule with other fields; the rule itself if they are the same."""
    if (permission, pattern, action) == (rule.permission, rule.pattern, rule.action):
        return rule
    return PermissionRule(permission=permission, pattern=pattern, action=action)
