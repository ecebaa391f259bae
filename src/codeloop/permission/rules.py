"""What is allowed: layered rules, the last one that matches counts. Pure."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from codeloop.kit.wildcard import covers, expand_home, matches, overlaps
from codeloop.schema.permission import Action, Need, PermissionRule, Ruleset


class Verdict(Struct, frozen=True):
    """The answer to a need: the action, the patterns that still have to be asked for, and the rule that decided.

    `doubtful`: asked because of what may happen beyond the patterns; an "always" for these can't settle it.
    """

    action: Action
    patterns: tuple[str, ...] = ()
    rule: PermissionRule | None = None
    doubtful: bool = False


ASK = PermissionRule(permission="*", pattern="*", action="ask")


def last_match(permission: str, pattern: str, rules: Iterable[PermissionRule]) -> PermissionRule | None:
    """Return the last rule whose permission and pattern wildcards both match."""
    found = None
    for rule in rules:
        if matches(permission, rule.permission) and matches(pattern, expand_home(rule.pattern)):
            found = rule
    return found


def decide(need: Need, *rulesets: Ruleset, grants: Ruleset = ()) -> Verdict:
    """Decide a need: deny if any of its patterns is denied, else ask if any is asked for, else allow.

    Rulesets are read as one list, later ones after earlier ones. A pattern that no rule matches is asked for.
    A grant ("always") only turns a question into permission: it never lifts a denial. A need without patterns is
    asked for. What is only possible (`need.possible`) turns permission into a question if a rule could deny it or ask
    for it; where the rules allow whatever it may turn out to be, nothing is asked.
    """
    rules = [rule for ruleset in rulesets for rule in ruleset if matches(need.permission, rule.permission)]
    if not need.patterns:
        return Verdict("ask", ("*",), ASK)
    asked: list[str] = []
    asking: PermissionRule | None = None
    allowing: PermissionRule | None = None
    for pattern in need.patterns:
        rule = last_match(need.permission, pattern, rules) or ASK
        if rule.action == "deny":
            return Verdict("deny", (pattern,), rule)
        if rule.action == "ask" and not _is_granted(need.permission, pattern, grants):
            asked.append(pattern)
            asking = asking or rule
        allowing = rule
    doubt = _doubt(need, rules, grants)
    if asked or doubt is not None:
        return Verdict("ask", tuple(asked) or need.patterns, asking or doubt, doubt is not None)
    return Verdict("allow", (), allowing)


def strictest(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the strictest of verdicts on one need: a denial, else one question for all that any of them asks for."""
    for verdict in verdicts:
        if verdict.action == "deny":
            return verdict
    asking = [verdict for verdict in verdicts if verdict.action == "ask"]
    if not asking:
        return verdicts[0]
    patterns = tuple(dict.fromkeys(pattern for verdict in asking for pattern in verdict.patterns))
    return Verdict("ask", patterns, asking[0].rule, any(verdict.doubtful for verdict in asking))


def _is_granted(permission: str, pattern: str, grants: Ruleset) -> bool:
    granted = last_match(permission, pattern, grants)
    return granted is not None and granted.action == "allow"


def _doubt(need: Need, rules: Sequence[PermissionRule], grants: Ruleset) -> PermissionRule | None:
    """Return the rule that could deny or ask for something possible. `rules` are those for the need's permission."""
    granted = [expand_home(grant.pattern) for grant in grants if matches(need.permission, grant.permission)]
    for text in need.possible:
        rule = _doubtful(text, rules, is_granted=any(covers(text, pattern) for pattern in granted))
        if rule is not None:
            return rule
    return None


def _doubtful(text: str, rules: Sequence[PermissionRule], *, is_granted: bool) -> PermissionRule | None:
    for rule in reversed(rules):
        pattern = expand_home(rule.pattern)
        is_settled = rule.action == "allow" or (rule.action == "ask" and is_granted)
        if is_settled and covers(text, pattern):
            return None
        if not is_settled and overlaps(text, pattern):
            return rule
    return None if is_granted else ASK


def is_offered(permission: str, *rulesets: Ruleset) -> bool:
    """Return whether a tool is worth offering: not when the last rule for its permission denies every pattern."""
    found = None
    for ruleset in rulesets:
        for rule in ruleset:
            if matches(permission, rule.permission):
                found = rule
    return not (found is not None and found.action == "deny" and found.pattern == "*")
