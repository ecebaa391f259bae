"""Rules of what may only restrict never make a verdict weaker,
and the twins of a denied tool are denied with it.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert

from codeloop.kit.wildcard import ANY_TEXT, ANY_WORDS
from codeloop.permission.rule_patterns import find_last_match
from codeloop.permission.rules import (
    RuleLayer,
    RuleLayers,
    decide,
    find_tool_denial,
    is_offered,
    judge_need,
    list_denied_patterns,
    restrict,
)
from codeloop.schema.permission import Need, PermissionRule, Trait
from tests.support.examples import scale_examples

STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
PATTERNS = st.one_of(
    st.sampled_from(
        ["*", "<secret>", "<protected>", "<read-only>", "<sandboxed>", "<remote>", "<offer>", "~/a"]
    ),
    st.text(alphabet="ab *?", max_size=5),
)
NAMES = ["bash", "edit", "read", "write", "shell", "multiedit"]
RULE = st.builds(
    PermissionRule,
    permission=st.sampled_from(["*", "?*", "ba*", *NAMES]),
    pattern=PATTERNS,
    action=st.sampled_from(["allow", "ask", "deny"]),
)
LAYER = st.builds(RuleLayer, name=st.just("source"), rules=st.lists(RULE, max_size=5).map(tuple))
TEXTS = st.one_of(
    st.text(alphabet="ab ", max_size=6), st.sampled_from([".env", ".git/config", ".bashrc"])
)
TRAITS: list[tuple[Trait, ...]] = [(), ("read-only",), ("sandboxed",), ("read-only", "sandboxed")]
KNOWN_IN_PART = st.text(alphabet=f"ab {ANY_TEXT}{ANY_WORDS}", max_size=6)


@st.composite
def needs(draw: st.DrawFn) -> Need:
    patterns = tuple(draw(st.lists(TEXTS, max_size=3)))
    return Need(
        permission=draw(st.sampled_from(NAMES)),
        patterns=patterns,
        possible=tuple(draw(st.lists(KNOWN_IN_PART, max_size=2))),
        traits=draw(st.sampled_from(TRAITS)),
        unproven=draw(st.sampled_from(["", "it has a variable"])),
        spellings={each: tuple(draw(st.lists(TEXTS, max_size=1))) for each in patterns},
        remote=patterns if draw(st.booleans()) else (),
    )


def rule(text: str) -> PermissionRule:
    return convert(
        dict(zip(("permission", "pattern", "action"), text.split(":"), strict=True)), PermissionRule
    )


def layers(*rules: str) -> RuleLayers:
    return (RuleLayer("rules", tuple(map(rule, rules))),)


@pytest.mark.slow
@given(
    st.lists(st.lists(LAYER, min_size=1, max_size=2).map(tuple), min_size=1, max_size=2),
    st.lists(LAYER, max_size=3),
    LAYER,
    needs(),
    st.lists(RULE.filter(lambda each: each.action == "allow"), max_size=2).map(tuple),
)
@settings(max_examples=scale_examples(600))
def test_a_further_source_never_makes_a_verdict_weaker(
    own: list[RuleLayers],
    sources: list[RuleLayer],
    further: RuleLayer,
    need: Need,
    grants: tuple[PermissionRule, ...],
) -> None:
    before, _ = judge_need(need, restrict(own, *sources), grants)
    after, _ = judge_need(need, restrict(own, *sources, further), grants)
    assert STRICTNESS[after.action] >= STRICTNESS[before.action]
    # Nor does it matter in which order they come.
    turned, _ = judge_need(need, restrict(own, further, *reversed(sources)), grants)
    assert turned.action == after.action


@pytest.mark.slow
@given(LAYER, LAYER, st.sampled_from(["bash", "edit", "read"]), st.text(alphabet="ab ", max_size=6))
@settings(max_examples=scale_examples(300))
def test_the_verdict_is_the_stricter_of_both(
    own: RuleLayer, source: RuleLayer, permission: str, pattern: str
) -> None:
    need = Need(permission=permission, patterns=(pattern,))
    alone = decide(need, (rule("*:*:allow"), *source.rules)).action
    stricter = max(decide(need, own.rules).action, alone, key=STRICTNESS.__getitem__)
    assert judge_need(need, restrict([(own,)], source))[0].action == stricter


@pytest.mark.slow
@given(LAYER, RULE, needs())
@settings(max_examples=scale_examples(300))
def test_a_denial_at_the_end_never_makes_a_verdict_weaker(
    own: RuleLayer, last: PermissionRule, need: Need
) -> None:
    denying = PermissionRule(permission=last.permission, pattern=last.pattern, action="deny")
    assert (
        STRICTNESS[decide(need, own.rules, (denying,)).action]
        >= STRICTNESS[decide(need, own.rules).action]
    )


def judge(lists: tuple[RuleLayers, ...], permission: str, *patterns: str) -> list[str]:
    return [
        judge_need(Need(permission=permission, patterns=(each,)), lists)[0].action
        for each in patterns
    ]


def test_a_question_lifts_no_denial_and_an_exception_gives_back_the_verdict_without_it() -> None:
    own = layers(
        "*:*:allow", "bash:git push *:deny", "bash:git push origin:allow", "read:*.env:ask"
    )
    asking = restrict([own], *layers("bash:git *:ask"))
    assert judge(asking, "bash", "git push x", "git push origin", "git log", "ls") == [
        "deny",
        "ask",
        "ask",
        "allow",
    ]
    denying = restrict([own], *layers("*:*:deny", "read:*:allow"))
    assert judge(denying, "read", "x.env", "x") == ["ask", "allow"]
    assert judge(denying, "edit", "x") == ["deny"]
    assert restrict([own], RuleLayer("nothing", ())) == (own,)


@pytest.mark.parametrize("name", ["write", "multiedit", "apply_patch", "patch"])
def test_a_denied_tool_is_denied_with_all_that_do_the_same(name: str) -> None:
    lists = (layers("*:*:allow", f"{name}:*:deny"),)
    assert judge(lists, "edit", "a") == ["deny"]
    assert not is_offered("edit", lists[0][0].rules)
    assert find_tool_denial(name, lists) == rule(f"{name}:*:deny")
    # Allowing one allows only to offer it.
    assert judge((layers("*:*:ask", f"{name}:*:allow"),), "edit", "a") == ["ask"]
    # A part of it is denied for all of them, and a later rule about the permission counts.
    assert judge((layers("*:*:allow", f"{name}:a*:deny"),), "edit", "ab", "b") == ["deny", "allow"]
    assert judge((layers("*:*:allow", f"{name}:*:deny", "edit:*:allow"),), "edit", "a") == ["allow"]


def test_a_rule_for_everything_denies_no_tool_whose_permission_is_allowed() -> None:
    lists = (layers("*:*:deny", "edit:*:allow"),)
    assert [
        find_tool_denial(each, lists) is None for each in ("write", "multiedit", "bash_output")
    ] == [
        True,
        True,
        False,
    ]
    assert [is_offered(each, lists[0][0].rules) for each in ("write", "edit", "bash_output")] == [
        True,
        True,
        False,
    ]


def test_whether_a_tool_is_offered_decides_about_no_call() -> None:
    lists = (layers("*:*:allow", "multiedit:<offer>:deny"),)
    assert not is_offered("multiedit", lists[0][0].rules)
    assert find_tool_denial("multiedit", lists) is None
    assert judge(lists, "edit", "a") == ["allow"]
    assert list_denied_patterns("edit", lists) == ()
    assert is_offered("edit", lists[0][0].rules)
    assert find_last_match("multiedit", "<offer>", lists[0][0].rules) is not None
