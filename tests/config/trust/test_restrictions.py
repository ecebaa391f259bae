"""Restrictions of an untrusted project: the stricter verdict of both, for every need."""

from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import convert

from codeloop.config.trust.restrictions import restrict_rules
from codeloop.extend.agents import build_rules
from codeloop.kit.wildcard import TooManyOverlaps, intersect_wildcards, matches
from codeloop.permission.rules import decide, find_last_match
from codeloop.schema.config import AgentConfig, Config
from codeloop.schema.limits import CONFIG_OVERLAPS
from codeloop.schema.permission import Need, PermissionRule, Trait
from tests.support.examples import scale_examples

STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
PATTERNS = st.text(alphabet="ab *?", max_size=5)
TEXTS = ["".join(letters) for size in range(6) for letters in product("ab ", repeat=size)]
RULES = st.lists(
    st.builds(
        PermissionRule,
        permission=st.sampled_from(["*", "a", "a*", "?", "b"]),
        pattern=st.one_of(st.just("*"), PATTERNS),
        action=st.sampled_from(["allow", "ask", "deny"]),
    ),
    max_size=5,
).map(tuple)


def rule(text: str) -> PermissionRule:
    return convert(dict(zip(("permission", "pattern", "action"), text.split(":"), strict=True)), PermissionRule)


def tighten(base: tuple[PermissionRule, ...], restrictions: tuple[PermissionRule, ...]) -> tuple[PermissionRule, ...]:
    return (*base, *restrict_rules(base, restrictions))


def verdict(permission: str, pattern: str, rules: tuple[PermissionRule, ...]) -> str:
    return decide(Need(permission=permission, patterns=(pattern,)), rules).action


@pytest.mark.slow
@given(PATTERNS, PATTERNS)
@example("a *", "a ?*")
@example("a *", "* *")
@example("*a*", "*b*")
@settings(max_examples=scale_examples(150))
def test_an_overlap_matches_what_both_match_and_nothing_else(one: str, other: str) -> None:
    both = intersect_wildcards(one, other, CONFIG_OVERLAPS.value)
    for text in TEXTS:
        assert any(matches(text, part) for part in both) == (matches(text, one) and matches(text, other)), text


@pytest.mark.slow
@given(RULES, RULES, st.sampled_from(["a", "b", "ab"]), st.text(alphabet="ab ", max_size=6))
@settings(max_examples=scale_examples(300))
def test_the_verdict_is_the_stricter_of_both(
    base: tuple[PermissionRule, ...], restrictions: tuple[PermissionRule, ...], permission: str, pattern: str
) -> None:
    without = verdict(permission, pattern, base)
    wanted = find_last_match(permission, pattern, restrictions)
    stricter = max(without, wanted.action if wanted else "allow", key=STRICTNESS.__getitem__)
    assert verdict(permission, pattern, tighten(base, restrictions)) == stricter


TRAIT_RULES = st.lists(
    st.builds(
        PermissionRule,
        permission=st.sampled_from(["*", "a"]),
        pattern=st.sampled_from(["*", "a *", "a b", "<read-only>", "<sandboxed>"]),
        action=st.sampled_from(["allow", "ask", "deny"]),
    ),
    max_size=5,
).map(tuple)
TRAITS: list[tuple[Trait, ...]] = [(), ("read-only",), ("sandboxed",), ("read-only", "sandboxed")]


@pytest.mark.slow
@given(TRAIT_RULES, TRAIT_RULES, st.sampled_from(["a b", "a c", "c"]), st.sampled_from(TRAITS))
@settings(max_examples=scale_examples(600))
def test_rules_about_traits_never_loosen_anything(
    base: tuple[PermissionRule, ...],
    restrictions: tuple[PermissionRule, ...],
    pattern: str,
    traits: tuple[Trait, ...],
) -> None:
    need = Need(permission="a", patterns=(pattern,), traits=traits)
    without, restricted = decide(need, base).action, decide(need, tighten(base, restrictions)).action
    wanted = decide(need, (rule("a:*:allow"), *restrictions)).action
    assert STRICTNESS[restricted] >= STRICTNESS[without]
    assert STRICTNESS[restricted] >= STRICTNESS[wanted]


def test_an_ask_does_not_lift_an_earlier_denial() -> None:
    base = (rule("*:*:allow"), rule("bash:git push *:deny"), rule("bash:git push origin:allow"))
    rules = tighten(base, (rule("bash:git *:ask"),))
    assert [verdict("bash", text, rules) for text in ("git push x", "git push origin", "git log", "ls")] == [
        "deny",
        "ask",
        "ask",
        "allow",
    ]


def test_a_project_s_own_exception_gives_back_the_verdict_without_it() -> None:
    base = (rule("*:*:allow"), rule("read:*.env:ask"))
    rules = tighten(base, (rule("*:*:deny"), rule("read:*:allow")))
    assert [verdict("read", "x.env", rules), verdict("read", "x", rules), verdict("edit", "x", rules)] == [
        "ask",
        "allow",
        "deny",
    ]


def test_an_allow_alone_changes_nothing() -> None:
    base = (rule("bash:*:ask"),)
    assert tighten(base, (rule("bash:*:allow"), rule("*:*:allow"))) == base


def test_the_home_directory_is_seen_behind_both_spellings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    rules = tighten((rule("*:*:allow"), rule("read:~/secret/*:deny")), (rule("read:/home/me/*:ask"),))
    assert verdict("read", "/home/me/secret/x", rules) == "deny"
    assert verdict("read", "/home/me/x", rules) == "ask"
    assert verdict("read", "/srv/x", rules) == "allow"


def test_wildcards_that_overlap_in_too_many_ways_end_in_a_denial() -> None:
    wild, wilder = "*a*b*c*d*e*", "*f*g*h*i*j*"
    with pytest.raises(TooManyOverlaps):
        intersect_wildcards(wild, wilder, CONFIG_OVERLAPS.value)
    base = (rule("*:*:allow"), rule(f"bash:{wild}:deny"))
    assert verdict("bash", "fghijabcde", tighten(base, (rule(f"bash:{wilder}:ask"),))) == "deny"
    kept = tighten(base, (rule("bash:x:deny"), rule(f"bash:{wilder}:allow")))
    assert verdict("bash", "fghijabcde", kept) == "deny"
    assert verdict("bash", "fghij", kept) == "allow"


def test_an_agent_s_rules_are_base_built_in_global_its_own_and_then_restrictions() -> None:
    config = Config(
        permission=[rule("bash:*:ask")],
        restrictions=[rule("edit:*:ask")],
        agent={"build": AgentConfig(permission=[rule("bash:*:allow")], restrictions=[rule("bash:rm *:ask")])},
    )
    base, built_in = (rule("*:*:allow"),), (rule("edit:a:deny"),)
    rules = (*base, *build_rules(config, "build", base, built_in))
    needs = [("bash", "ls"), ("bash", "rm x"), ("edit", "x"), ("edit", "a")]
    assert [verdict(*need, rules) for need in needs] == ["allow", "ask", "ask", "deny"]
    assert verdict("bash", "ls", (*base, *build_rules(config, "plan", base))) == "ask"


def test_an_unrestricted_agent_gets_no_further_rules() -> None:
    config = Config(permission=[rule("bash:*:ask")])
    assert build_rules(config, "build", (rule("*:*:allow"),)) == (rule("bash:*:ask"),)
