"""Decides by rules whether a need is allowed, asked about or denied.
The last rule that matches counts.

Pure functions: the gate (`gate.py`) reads rules and grants, asks users and keeps the decisions.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from codeloop.kit.wildcard import MARKS, covers, expand_home, matches, overlaps
from codeloop.permission.rule_patterns import (
    FILE_KINDS,
    TOOL_PERMISSIONS,
    find_last_match,
    list_wildcards,
    matches_text,
    restricts,
)
from codeloop.schema.permission import (
    OFFER_PATTERN,
    TRAIT_PATTERNS,
    Action,
    Need,
    PermissionRule,
    Ruleset,
    Trait,
)


class Verdict(Struct, frozen=True):
    """The decision on a need: the action, the patterns that are denied or asked about,
    and the rule that decided.

    `is_doubtful`: the effect may go beyond the patterns,
    so an "always" for them can't allow the need.
    """

    action: Action
    patterns: tuple[str, ...] = ()
    rule: PermissionRule | None = None
    is_doubtful: bool = False


class RuleLayer(Struct, frozen=True):
    """Rules of one origin. `name`: the origin in words;
    `locate`: returns where the rule with an index was written.
    """

    name: str
    rules: Ruleset
    locate: Callable[[int], str] | None = None

    def find_origin(self, index: int) -> str:
        """Return where a rule comes from."""
        return self.locate(index) if self.locate is not None else self.name


RuleLayers = tuple[RuleLayer, ...]
"""Rule lists that are read as one, later ones last."""


DEFAULT_RULE = PermissionRule(permission="*", pattern="*", action="ask")
"""The rule that decides where no other one matches."""
_ALLOW_ALL = RuleLayer("no rule", (PermissionRule(permission="*", pattern="*", action="allow"),))


def decide(need: Need, *rulesets: Ruleset, grants: Ruleset = ()) -> Verdict:
    """Decide a need: deny if any of its patterns is denied, else ask if any is asked for,
    else allow.

    Rulesets are read as one list, later ones after earlier ones.
    A pattern that no rule matches is asked for.
    A grant ("always") only turns a question into permission: it never lifts a denial. A need
    without patterns is asked for.

    Allowing needs proof: where it is not certain what a line does (`need.unproven`), neither a
    grant nor a rule that allows particular commands counts. A rule that allows everything (`*`), or
    one of the need's traits, still does.
    A possible effect (`need.possible`) is denied if a rule could deny it, and asked for if one
    could ask for it; where the rules allow every possibility, nothing is asked.
    """
    rules = [rule for ruleset in rulesets for rule in ruleset if _is_applicable(rule, need)]
    grants = () if need.unproven else grants
    if not need.patterns and not need.possible:
        return Verdict("ask", ("*",), DEFAULT_RULE)
    asked_patterns: list[str] = []
    asking: PermissionRule | None = None
    allowing: PermissionRule | None = None
    for pattern in need.patterns:
        spellings = need.spellings.get(pattern, ())
        relevant = [rule for rule in rules if _is_relevant(rule, pattern, spellings, need)]
        rule = _find_deciding_rule(pattern, spellings, relevant) or DEFAULT_RULE
        if rule.action == "deny":
            return Verdict("deny", (pattern,), rule)
        if rule.action == "ask" and not _is_granted(need.permission, pattern, grants):
            asked_patterns.append(pattern)
            asking = asking or rule
        allowing = rule
    possible_rule = _find_possible_rule(need, rules, grants)
    if possible_rule is not None and possible_rule.action == "deny":
        return Verdict("deny", need.patterns, possible_rule, is_doubtful=True)
    if asked_patterns or possible_rule is not None:
        is_doubtful = possible_rule is not None or bool(need.unproven)
        return Verdict(
            "ask",
            tuple(asked_patterns) or need.patterns or ("*",),
            asking or possible_rule,
            is_doubtful,
        )
    return Verdict("allow", (), allowing)


def _find_deciding_rule(
    pattern: str, spellings: Sequence[str], rules: Sequence[PermissionRule]
) -> PermissionRule | None:
    """Return the last rule that matches a pattern, or is a specific deny or ask that
    may match a spelling of it.
    """
    for rule in reversed(rules):
        if matches_text(rule, pattern):
            return rule
        # Only towards strictness: an uncertain spelling may forbid a command, but never allow one.
        wildcards = list_wildcards(rule) if rule.action != "allow" and spellings else ()
        if any(each != "*" and overlaps(text, each) for each in wildcards for text in spellings):
            return rule
    return None


def restrict(lists: Iterable[RuleLayers], *sources: RuleLayer) -> tuple[RuleLayers, ...]:
    """Return the lists that a need must pass when each of `sources` may only restrict: the
    given ones, and one of each.

    In the list of a source, what no rule matches is allowed. As the strictest list counts
    (`find_strictest`), its `allow` permits nothing that the others don't,
    nor does its `ask` lift a denial.
    """
    return (*lists, *((_ALLOW_ALL, source) for source in sources if source.rules))


def _is_about(rule: PermissionRule, permission: str) -> bool:
    """Return whether a rule is about a permission, by a name of its own or by that of
    a tool (`find_meant_permission`).
    """
    if matches(permission, rule.permission):
        return True
    can_restrict = rule.action != "allow" and rule.pattern != OFFER_PATTERN
    return can_restrict and restricts(rule, permission)


def _is_applicable(rule: PermissionRule, need: Need) -> bool:
    """Return whether a rule applies to a need: by the permission, the traits and the proof,
    whatever the patterns.
    """
    if rule.pattern == OFFER_PATTERN or not _is_about(rule, need.permission):
        return False
    if rule.pattern in TRAIT_PATTERNS:
        return TRAIT_PATTERNS[rule.pattern] in need.traits
    # `rm *: allow` is about how a line starts; in a line that is not proved,
    # something else may run as well.
    return not need.unproven or rule.action != "allow" or rule.pattern == "*"


def find_strictest(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the strictest of verdicts on one need: a denial,
    else one question for all that any of them asks for.
    """
    for verdict in verdicts:
        if verdict.action == "deny":
            return verdict
    asking = [verdict for verdict in verdicts if verdict.action == "ask"]
    if not asking:
        return verdicts[0]
    patterns = tuple(dict.fromkeys(pattern for verdict in asking for pattern in verdict.patterns))
    return Verdict("ask", patterns, asking[0].rule, any(verdict.is_doubtful for verdict in asking))


def judge_need(
    need: Need, lists: Sequence[RuleLayers], grants: Ruleset = ()
) -> tuple[Verdict, str]:
    """Decide a need that must pass several lists of rules: the strictest verdict,
    and where its rule was written.
    """
    verdicts = [decide(need, *(layer.rules for layer in layers), grants=grants) for layers in lists]
    verdict = find_strictest(verdicts)
    for layers, each in zip(lists, verdicts, strict=True):
        # By identity: an equal rule of another list was not the one that decided.
        if each.action == verdict.action and each.rule is verdict.rule:
            return verdict, _find_rule_origin(verdict.rule, layers)
    return verdict, _find_rule_origin(verdict.rule, lists[0])


def judge_patterns(
    permission: str, patterns: Sequence[str], lists: Sequence[RuleLayers]
) -> dict[str, Action]:
    """Return the action of the rules on each pattern, judged alone;
    allowed patterns are left out.
    """
    actions: dict[str, Action] = {
        each: judge_need(Need(permission=permission, patterns=(each,)), lists)[0].action
        for each in patterns
    }
    return {each: action for each, action in actions.items() if action != "allow"}


def list_denied_patterns(permission: str, lists: Sequence[RuleLayers]) -> tuple[str, ...]:
    """Return the patterns for which rules deny a permission, as wildcards;
    a denial of everything is not listed.
    """
    rules = (
        rule
        for layers in lists
        for layer in layers
        for rule in layer.rules
        if rule.action == "deny" and rule.pattern != OFFER_PATTERN
    )
    wildcards = (
        each for rule in rules if _is_about(rule, permission) for each in list_wildcards(rule)
    )
    return tuple(dict.fromkeys(each for each in wildcards if each != "*"))


def _find_rule_origin(rule: PermissionRule | None, layers: RuleLayers) -> str:
    """Return where a rule was written: the last place if equal rules stand in several,
    since the last one counted.
    """
    for layer in reversed(layers):
        for index in range(len(layer.rules) - 1, -1, -1):
            if layer.rules[index] == rule:
                return layer.find_origin(index)
    return "no rule: then it is asked"


_GUARDED_KINDS = {"read": FILE_KINDS["<secret>"], "edit": FILE_KINDS["<protected>"]}


def _is_granted(permission: str, pattern: str, grants: Ruleset) -> bool:
    """Return whether an "always" covers a pattern.
    A guarded file needs one for exactly this file.
    """
    # A user who gave an "always" for a folder did not have its secrets in mind.
    if permission in _GUARDED_KINDS and _GUARDED_KINDS[permission](pattern):
        grants = tuple(grant for grant in grants if grant.pattern == pattern)
    granted = find_last_match(permission, pattern, grants)
    return granted is not None and granted.action == "allow"


def _find_possible_rule(
    need: Need, rules: Sequence[PermissionRule], grants: Ruleset
) -> PermissionRule | None:
    """Return the rule that could deny one of `need.possible`, else one that could ask about it,
    else None.

    `rules` are those that apply to the need.
    """
    granted = [
        expand_home(grant.pattern) for grant in grants if matches(need.permission, grant.permission)
    ]
    asking: PermissionRule | None = None
    for text in need.possible:
        relevant = [rule for rule in rules if _may_be_relevant(rule, text, need)]
        rule = _find_rule_for_text(
            text, relevant, is_granted=any(covers(text, pattern) for pattern in granted)
        )
        if rule is not None and rule.action == "deny":
            return rule
        asking = asking or rule
    return asking


def _is_relevant(rule: PermissionRule, text: str, spellings: Sequence[str], need: Need) -> bool:
    """Return whether a rule applies to a text as far as `<remote>` and `<loss>` say;
    one with other patterns does.
    """
    match rule.pattern:
        case "<remote>":
            return text in need.remote
        case "<loss>":
            if not any("git" in each for each in (text, *spellings)):
                return False
            # Imported late: most turns run no git.
            from codeloop.permission.git_losses import discards_work

            return discards_work(text, spellings)
        case _:
            return True


def _may_be_relevant(rule: PermissionRule, text: str, need: Need) -> bool:
    """Return whether a rule may apply to a text with unknown parts, as `_is_relevant`.

    A denial applies as well where the program is unknown: the text then begins with a mark.
    """
    return _is_relevant(rule, text, (), need) or (rule.action == "deny" and text[:1] in MARKS)


def _find_rule_for_text(
    text: str, rules: Sequence[PermissionRule], *, is_granted: bool
) -> PermissionRule | None:
    """Return the rule that could deny a text, else the last one that could ask about it;
    None: it certainly passes.

    `text` has the marks of `kit.wildcard` for its unknown parts, so a rule may match it or may not.
    """
    asking: PermissionRule | None = None
    for rule in reversed(rules):
        if rule.pattern in FILE_KINDS and rule.action != "deny":
            # See FILE_KINDS: an ask needs a file that is known for certain, and none is here.
            continue
        wildcards = list_wildcards(rule)
        if rule.action == "deny" and any(overlaps(text, each) for each in wildcards):
            return rule
        if (
            rule.action == "ask"
            and not is_granted
            and any(overlaps(text, each) for each in wildcards)
        ):
            asking = asking or rule
        if rule.action != "deny" and any(covers(text, each) for each in wildcards):
            # This rule matches whatever the text turns out to be, so earlier rules never count.
            return asking
    return asking or (None if is_granted else DEFAULT_RULE)


def is_offered(
    permission: str, *rulesets: Ruleset, traits: Sequence[Trait] = (), is_needed: bool = False
) -> bool:
    """Return whether a model is offered a tool: not if the last rule for its permission
    denies every pattern.

    `permission`: that, or the tool's name. `traits`: those that every call of the tool has.
    `is_needed`: rules with OFFER_PATTERN do not count.
    """
    rules = (
        rule
        for ruleset in rulesets
        for rule in ruleset
        if not (is_needed and rule.pattern == OFFER_PATTERN)
    )
    match = _find_last_about(permission, rules, traits)
    return not (
        match is not None and match.action == "deny" and match.pattern in {"*", OFFER_PATTERN}
    )


def find_tool_denial(
    tool: str, lists: Sequence[RuleLayers], traits: Sequence[Trait] = ()
) -> PermissionRule | None:
    """Return a rule that denies all calls of a tool by its name, whatever permission they need;
    None: there is none.
    """
    for layers in lists:
        rules = (rule for layer in layers for rule in layer.rules if rule.pattern != OFFER_PATTERN)
        match = _find_last_about(tool, rules, traits)
        if match is not None and match.action == "deny" and match.pattern == "*":
            return match
    return None


def _find_last_about(
    name: str, rules: Iterable[PermissionRule], traits: Sequence[Trait]
) -> PermissionRule | None:
    """Return the last rule about a permission or a tool, whatever its pattern; None: there is none.

    A rule for all permissions (`*`) says nothing about a tool that is decided about by another
    permission (TOOL_PERMISSIONS), and one for a trait nothing about a tool whose calls lack it.
    What is not offered by itself (OFFER_PATTERN) is offered by a rule that names it,
    not by one that allows everything.
    """
    match = None
    for rule in rules:
        if (
            rule.permission == "*"
            and rule.action != "deny"
            and match is not None
            and match.pattern == OFFER_PATTERN
        ):
            continue
        if (
            rule.permission == "*"
            and rule.pattern in TRAIT_PATTERNS
            and TRAIT_PATTERNS[rule.pattern] not in traits
        ):
            continue
        if _is_about(rule, name) and not (rule.permission == "*" and name in TOOL_PERMISSIONS):
            match = rule
    return match
