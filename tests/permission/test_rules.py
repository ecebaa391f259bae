"""How layered rules decide."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.kit.wildcard import ANY_TEXT, expand_home
from codeloop.permission.rules import decide, is_offered
from codeloop.schema.permission import Action, Need, PermissionRule, Ruleset

ACTIONS: st.SearchStrategy[Action] = st.sampled_from(["allow", "ask", "deny"])
NAMES = st.sampled_from(["bash", "edit", "read"])
TEXTS = st.text("ab ", min_size=1, max_size=3)
WILDCARDS = st.sampled_from(["*", "a*", "b *", "?", "ab", "a b"])
RULES = st.builds(
    lambda permission, pattern, action: PermissionRule(
        permission=permission, pattern=pattern, action=action
    ),
    st.sampled_from(["*", "bash", "edit", "b*"]),
    WILDCARDS,
    ACTIONS,
)
RULESETS: st.SearchStrategy[Ruleset] = st.lists(RULES, max_size=6).map(tuple)
NEEDS = st.builds(
    lambda permission, patterns, possible: Need(
        permission=permission, patterns=tuple(patterns), possible=tuple(possible)
    ),
    NAMES,
    st.lists(TEXTS, min_size=1, max_size=3),
    st.lists(st.sampled_from([ANY_TEXT, "a" + ANY_TEXT]), max_size=1),
)
STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


def rule(permission: str, pattern: str, action: Action) -> PermissionRule:
    return PermissionRule(permission=permission, pattern=pattern, action=action)


def need(*patterns: str, permission: str = "bash", possible: tuple[str, ...] = ()) -> Need:
    return Need(permission=permission, patterns=patterns, possible=possible)


ALLOW_ALL = rule("*", "*", "allow")


def test_the_last_rule_that_matches_counts() -> None:
    rules = (ALLOW_ALL, rule("bash", "git *", "deny"), rule("bash", "git status *", "allow"))
    assert decide(need("git status"), rules).action == "allow"
    verdict = decide(need("git push"), rules)
    assert (verdict.action, verdict.rule) == ("deny", rules[1])


def test_what_no_rule_matches_is_asked_for() -> None:
    assert decide(need("ls"), (rule("edit", "*", "allow"),)).action == "ask"
    assert decide(need(), (ALLOW_ALL,)).action == "ask"


def test_only_the_patterns_without_leave_are_asked_for() -> None:
    rules = (ALLOW_ALL, rule("bash", "npm *", "ask"))
    assert decide(need("ls", "npm test", "npm run x"), rules).patterns == ("npm test", "npm run x")


def test_home_is_expanded_in_patterns() -> None:
    home = str(Path.home())
    assert expand_home("~/x") == expand_home("$HOME/x") == f"{home}/x"
    assert expand_home("~root/x") == "~root/x"
    wanted = need(f"{home}/x/y", permission="external_directory")
    assert decide(wanted, (rule("external_directory", "~/x/*", "allow"),)).action == "allow"


@pytest.mark.slow
@given(NEEDS, RULESETS, RULES)
def test_a_rule_for_everything_at_the_end_decides(
    wanted: Need, rules: Ruleset, last: PermissionRule
) -> None:
    blanket = rule("*", "*", last.action)
    assert decide(wanted, rules, (blanket,)).action == last.action


@given(NEEDS, RULESETS, RULESETS)
def test_rulesets_are_read_as_one_list(wanted: Need, first: Ruleset, second: Ruleset) -> None:
    assert decide(wanted, first, second) == decide(wanted, (*first, *second))


@given(NEEDS, RULESETS, RULESETS)
def test_a_grant_never_lifts_a_denial_nor_takes_leave_away(
    wanted: Need, rules: Ruleset, grants: Ruleset
) -> None:
    allowing = tuple(rule(grant.permission, grant.pattern, "allow") for grant in grants)
    before, after = decide(wanted, rules).action, decide(wanted, rules, grants=allowing).action
    assert after == before or (before, after) == ("ask", "allow")


@given(NEEDS, RULESETS, RULES)
def test_a_deny_at_the_end_only_tightens(
    wanted: Need, rules: Ruleset, last: PermissionRule
) -> None:
    tighter = rule(last.permission, last.pattern, "deny")
    assert (
        STRICTNESS[decide(wanted, rules, (tighter,)).action]
        >= STRICTNESS[decide(wanted, rules).action]
    )


@given(NEEDS, RULESETS, st.data())
def test_making_one_rule_stricter_never_loosens(
    wanted: Need, rules: Ruleset, data: st.DataObject
) -> None:
    if not rules:
        return
    index = data.draw(st.integers(0, len(rules) - 1))
    old = rules[index]
    action = data.draw(ACTIONS.filter(lambda a: STRICTNESS[a] >= STRICTNESS[old.action]))
    stricter = (*rules[:index], rule(old.permission, old.pattern, action), *rules[index + 1 :])
    assert STRICTNESS[decide(wanted, stricter).action] >= STRICTNESS[decide(wanted, rules).action]


@given(NEEDS, RULESETS)
def test_what_is_only_possible_never_loosens(wanted: Need, rules: Ruleset) -> None:
    known = Need(permission=wanted.permission, patterns=wanted.patterns)
    assert STRICTNESS[decide(wanted, rules).action] >= STRICTNESS[decide(known, rules).action]


@pytest.mark.parametrize(
    ("possible", "rules", "grants", "action"),
    [
        (ANY_TEXT, (ALLOW_ALL,), (), "allow"),
        (ANY_TEXT, (ALLOW_ALL, rule("bash", "*", "allow")), (), "allow"),
        (ANY_TEXT, (ALLOW_ALL, rule("edit", "x", "deny")), (), "allow"),
        (ANY_TEXT, (ALLOW_ALL, rule("bash", "rm *", "deny")), (), "deny"),
        (ANY_TEXT, (rule("bash", "rm *", "deny"), rule("bash", "*", "ask")), (), "ask"),
        (
            ANY_TEXT,
            (ALLOW_ALL, rule("bash", "rm *", "deny"), rule("bash", "r*", "ask")),
            (),
            "deny",
        ),
        (
            ANY_TEXT,
            (ALLOW_ALL, rule("bash", "rm *", "deny")),
            (rule("bash", "*", "allow"),),
            "deny",
        ),
        (
            ANY_TEXT,
            (ALLOW_ALL, rule("bash", "rm *", "deny"), rule("bash", "*", "allow")),
            (),
            "allow",
        ),
        (
            ANY_TEXT,
            (ALLOW_ALL, rule("bash", "rm *", "ask")),
            (rule("bash", "echo *", "allow"),),
            "ask",
        ),
        (f"echo {ANY_TEXT}", (ALLOW_ALL, rule("bash", "rm *", "deny")), (), "allow"),
        (f"echo {ANY_TEXT}", (ALLOW_ALL, rule("bash", "echo secret*", "deny")), (), "deny"),
        (
            f"echo {ANY_TEXT}",
            (rule("bash", "*", "ask"),),
            (rule("bash", "echo *", "allow"),),
            "allow",
        ),
    ],
)
def test_what_may_happen_is_asked_for_only_if_a_rule_could_mind(
    possible: str, rules: Ruleset, grants: Ruleset, action: Action
) -> None:
    wanted = need("echo x", possible=(possible,))
    assert decide(wanted, rules, grants=grants).action == action


def test_a_tool_that_is_denied_altogether_is_not_offered() -> None:
    denied = (ALLOW_ALL, rule("todowrite", "*", "deny"))
    assert not is_offered("todowrite", denied)
    assert is_offered("bash", denied)
    assert is_offered("todowrite", denied, (rule("todowrite", "a*", "allow"),))


@pytest.mark.parametrize(
    ("rules", "grants", "action"),
    [
        ((rule("bash", "*", "ask"), rule("bash", "echo *", "allow")), (), "ask"),
        ((rule("bash", "*", "deny"), rule("bash", "echo *", "allow")), (), "deny"),
        ((rule("bash", "*", "ask"),), (rule("bash", "echo *", "allow"),), "ask"),
        ((rule("bash", "*", "ask"),), (rule("bash", "*", "allow"),), "ask"),
        ((ALLOW_ALL,), (), "allow"),
        ((ALLOW_ALL, rule("bash", "rm *", "deny")), (), "allow"),
        ((ALLOW_ALL, rule("bash", "echo *", "deny")), (), "deny"),
    ],
)
def test_a_rule_for_some_commands_allows_only_what_is_proved(
    rules: Ruleset, grants: Ruleset, action: Action
) -> None:
    unproven = Need(permission="bash", patterns=("echo x",), unproven="it has a loop")
    assert decide(unproven, rules, grants=grants).action == action


def test_a_rule_for_a_trait_is_about_what_has_it() -> None:
    rules = (
        rule("bash", "*", "ask"),
        rule("bash", "<read-only>", "allow"),
        rule("bash", "git push *", "deny"),
    )
    reads = Need(permission="bash", patterns=("ls",), traits=("read-only",))
    verdict = decide(reads, rules)
    assert (verdict.action, verdict.rule) == ("allow", rules[1])
    assert decide(need("ls"), rules).action == "ask"
    assert decide(need("<read-only>"), rules).action == "ask"
    pushes = Need(permission="bash", patterns=("git push",), traits=("sandboxed", "read-only"))
    assert decide(pushes, rules).action == "deny"
    assert (
        decide(Need(permission="bash", patterns=("make",), traits=("sandboxed",)), rules).action
        == "ask"
    )


def test_a_denial_by_doubt_names_the_rule_that_could_apply() -> None:
    rules = (ALLOW_ALL, rule("bash", "rm *", "deny"))
    verdict = decide(need("$x", possible=(ANY_TEXT,)), rules)
    assert (verdict.action, verdict.rule, verdict.is_doubtful) == ("deny", rules[1], True)
