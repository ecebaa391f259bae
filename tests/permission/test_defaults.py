"""The base rules decide as documented."""

from pathlib import Path

import pytest

from codeloop.kit.wildcard import ANY_TEXT
from codeloop.permission.defaults import (
    make_agent_rules,
    make_base_rules,
    make_fixed_agent_rules,
    make_fixed_rules,
    make_guard_rules,
)
from codeloop.permission.rules import decide, find_strictest, is_offered
from codeloop.schema.permission import (
    TRAIT_PATTERNS,
    Action,
    Need,
    PermissionRule,
    Profile,
    Ruleset,
)
from codeloop.schema.wire import replace
from codeloop.shell.analysis import analyse, make_need

SCRATCH = Path("/data/scratch")
SKILLS = Path("/data/skills")


def rules_of(agent: str, *readable: Path, profile: Profile = "auto") -> Ruleset:
    return (*make_base_rules(profile, SCRATCH, *readable), *make_agent_rules(agent))


def wanted(permission: str, pattern: str) -> Need:
    """A trait as the pattern means a command that has it."""
    traits = (TRAIT_PATTERNS[pattern],) if pattern in TRAIT_PATTERNS else ()
    return Need(permission=permission, patterns=("make" if traits else pattern,), traits=traits)


def action(agent: str, permission: str, pattern: str) -> Action:
    return decide(wanted(permission, pattern), rules_of(agent, SKILLS)).action


@pytest.mark.parametrize(
    ("agent", "permission", "pattern", "expected"),
    [
        ("build", "bash", "make", "ask"),
        ("build", "bash", "<sandboxed>", "allow"),
        ("build", "bash", "<read-only>", "allow"),
        ("build", "external_directory", "<sandboxed>", "allow"),
        ("build", "edit", "src/a.py", "allow"),
        ("build", "doom_loop", "bash", "ask"),
        ("build", "external_directory", "/etc/*", "ask"),
        ("build", "external_directory", "/data/scratch/*", "allow"),
        ("build", "external_directory", "/data/skills/x/*", "allow"),
        ("build", "question", "*", "allow"),
        ("build", "plan_enter", "*", "allow"),
        ("build", "plan_exit", "*", "deny"),
        ("build", "read", "src/a.py", "allow"),
        ("build", "read", ".env", "ask"),
        ("build", "read", "app/.env.local", "ask"),
        ("build", "read", ".env.example", "allow"),
        ("build", "edit", ".git/config", "ask"),
        ("build", "edit", "sub/.git/hooks/x", "ask"),
        ("build", "edit", ".gitignore", "allow"),
        ("build", "edit", "/data/skills/x/SKILL.md", "ask"),
        ("plan", "edit", "src/a.py", "deny"),
        ("plan", "edit", ".codeloop/plans/a.md", "allow"),
        ("plan", "plan_exit", "*", "allow"),
        ("plan", "task", "general", "deny"),
        ("plan", "task", "explore", "allow"),
        ("general", "todowrite", "*", "deny"),
        ("general", "question", "*", "deny"),
        ("explore", "edit", "a", "deny"),
        ("explore", "grep", "x", "allow"),
        ("explore", "bash", "make", "deny"),
        ("explore", "bash", "<read-only>", "allow"),
        ("plan", "bash", "make", "deny"),
        ("plan", "bash", "<read-only>", "allow"),
        ("explore", "external_directory", "/etc/*", "deny"),
        ("explore", "read", ".env", "ask"),
        ("title", "read", "a", "deny"),
        ("summary", "bash", "ls", "deny"),
        ("compaction", "edit", "a", "deny"),
        ("mine", "bash", "<sandboxed>", "allow"),
        ("mine", "question", "*", "deny"),
    ],
)
def test_the_built_in_agents(agent: str, permission: str, pattern: str, expected: Action) -> None:
    assert action(agent, permission, pattern) == expected


@pytest.mark.parametrize(
    ("profile", "permission", "pattern", "expected"),
    [
        ("ask", "read", "src/a.py", "allow"),
        ("ask", "grep", "x", "allow"),
        ("ask", "read", ".env", "ask"),
        ("ask", "bash", "make", "ask"),
        ("ask", "bash", "<sandboxed>", "ask"),
        ("ask", "bash", "<read-only>", "allow"),
        ("ask", "edit", "src/a.py", "ask"),
        ("ask", "webfetch", "https://a.example", "ask"),
        ("ask", "mcp_tool", "*", "ask"),
        ("ask", "external_directory", "/etc/*", "ask"),
        ("ask", "external_directory", "/data/scratch/*", "allow"),
        ("ask", "sandbox", "make", "ask"),
        ("auto", "edit", "src/a.py", "allow"),
        ("auto", "edit", ".git/config", "ask"),
        ("auto", "webfetch", "https://a.example", "allow"),
        ("auto", "webfetch_private", "http://10.0.0.1", "ask"),
        ("auto", "sandbox", "make", "ask"),
        ("read-only", "read", "src/a.py", "allow"),
        ("read-only", "bash", "make", "deny"),
        ("read-only", "bash", "<sandboxed>", "deny"),
        ("read-only", "bash", "<read-only>", "allow"),
        ("read-only", "edit", "src/a.py", "deny"),
        ("read-only", "edit", ".codeloop/plans/a.md", "allow"),
        ("read-only", "mcp_tool", "*", "deny"),
        ("read-only", "webfetch", "https://a.example", "allow"),
        ("read-only", "sandbox", "make", "deny"),
        ("read-only", "external_directory", "/etc/*", "ask"),
    ],
)
def test_the_profiles(profile: Profile, permission: str, pattern: str, expected: Action) -> None:
    rules = (*make_base_rules(profile, SCRATCH, SKILLS), *make_agent_rules("build"))
    verdicts = [
        decide(wanted(permission, pattern), each)
        for each in (rules, make_fixed_rules(profile))
        if each
    ]
    assert find_strictest(verdicts).action == expected


@pytest.mark.parametrize(
    ("firm", "permission", "pattern", "expected"),
    [
        (make_fixed_rules("read-only"), "bash", "make", "deny"),
        (make_fixed_rules("read-only"), "bash", "<read-only>", "allow"),
        (make_fixed_rules("read-only"), "edit", "a", "deny"),
        (make_fixed_rules("read-only"), "mcp_tool", "*", "deny"),
        (make_fixed_rules("read-only"), "read", ".env", "allow"),
        (make_fixed_rules("read-only"), "external_directory", "/etc/*", "allow"),
        (make_fixed_rules("yolo"), "bash", "make", "allow"),
        (make_fixed_rules("yolo"), "sandbox", "make", "deny"),
        (make_fixed_agent_rules("plan"), "bash", "make", "deny"),
        (make_fixed_agent_rules("plan"), "edit", "a", "deny"),
        (make_fixed_agent_rules("plan"), "webfetch", "https://a.example", "allow"),
        (make_fixed_agent_rules("explore"), "bash", "make", "deny"),
        (make_fixed_agent_rules("explore"), "bash", "<read-only>", "allow"),
        (make_fixed_agent_rules("explore"), "edit", ".codeloop/plans/a.md", "deny"),
    ],
)
def test_what_a_blanket_permission_does_not_lift(
    firm: Ruleset, permission: str, pattern: str, expected: Action
) -> None:
    assert decide(wanted(permission, pattern), firm).action == expected


def test_what_nobody_means_by_allowing_everything_is_asked_unless_it_is_named() -> None:
    everything = (PermissionRule(permission="*", pattern="*", action="allow"),)
    for permission in ("sandbox", "webfetch_private"):
        assert decide(wanted(permission, "x"), make_guard_rules(everything)).action == "ask"
        named = PermissionRule(permission=permission, pattern="*", action="allow")
        assert (
            decide(wanted(permission, "x"), make_guard_rules((*everything, named))).action
            == "allow"
        )


def test_a_plain_session_runs_any_line_in_the_sandbox_without_a_question() -> None:
    for line in ('for f in *; do echo "$f"; done', 'eval "$x"', "$cmd", "(("):
        need = make_need(line, analyse(line))
        assert decide(replace(need, traits=("sandboxed",)), rules_of("build")).action == "allow"
        assert decide(need, rules_of("build")).action == "ask"


def test_a_persons_own_rule_wins_over_the_git_folder() -> None:
    own = (PermissionRule(permission="edit", pattern=".git/info/exclude", action="allow"),)
    assert decide(wanted("edit", ".git/info/exclude"), rules_of("build"), own).action == "allow"


def test_what_an_agent_can_never_use_is_not_offered() -> None:
    assert not is_offered("todowrite", rules_of("general"))
    assert not is_offered("edit", rules_of("explore"))
    assert is_offered("edit", rules_of("plan"))
    assert not is_offered("read", rules_of("title"))


BLANKET = (
    PermissionRule(permission="*", pattern="*", action="allow"),
    PermissionRule(permission="read", pattern="*", action="allow"),
    PermissionRule(permission="edit", pattern="*", action="allow"),
    PermissionRule(permission="edit", pattern="src/*", action="allow"),
    PermissionRule(permission="read", pattern="src/*", action="allow"),
)


@pytest.mark.parametrize(
    ("permission", "path"),
    [
        ("read", ".env"), ("read", "src/server.key"), ("read", ".aws/credentials"), ("edit", ".git/hooks/x"),
        ("edit", "src/.git/config"), ("edit", ".codeloop/codeloop.json"), ("edit", "AGENTS.md"), ("edit",
        "src/.husky/x"),
    ],
)  # fmt: skip
def test_a_blanket_rule_lifts_no_question_about_guarded_files(permission: str, path: str) -> None:
    assert (
        decide(Need(permission=permission, patterns=(path,)), make_guard_rules(BLANKET)).action
        == "ask"
    )


@pytest.mark.parametrize(
    ("permission", "pattern", "path"),
    [
        ("read", ".env", ".env"), ("read", "*.env", "a/prod.env"), ("read", "<secret>", "id_rsa"),
        ("edit", ".git/info/*", ".git/info/exclude"), ("edit", "<protected>", ".git/config"),
        ("edit", ".codeloop/plans/*.md", ".codeloop/plans/a.md"), ("*", ".env", ".env"), ("edit", "AGENTS.md",
        "AGENTS.md"),
    ],
)  # fmt: skip
def test_a_rule_that_names_guarded_files_lifts_the_question(
    permission: str, pattern: str, path: str
) -> None:
    own = (*BLANKET, PermissionRule(permission=permission, pattern=pattern, action="allow"))
    need = Need(permission="read" if permission == "*" else permission, patterns=(path,))
    assert decide(need, make_guard_rules(own)).action == "allow"


def test_rules_about_a_kind_of_file_may_also_deny_it() -> None:
    own = (*BLANKET, PermissionRule(permission="read", pattern="<secret>", action="deny"))
    assert decide(Need(permission="read", patterns=("app/.env",)), own).action == "deny"
    assert decide(Need(permission="read", patterns=("app/env.py",)), own).action == "allow"


def test_what_is_possible_is_asked_about_for_a_path_and_not_for_a_kind_of_file() -> None:
    maybe = Need(permission="read", patterns=(), possible=(ANY_TEXT,))
    assert decide(maybe, BLANKET, make_guard_rules(BLANKET)).action == "allow"
    for pattern in ("secrets/*", "*"):
        for action in ("ask", "deny"):
            rule = PermissionRule(permission="read", pattern=pattern, action=action)
            assert decide(maybe, BLANKET, (rule,)).action == action
    assert (
        decide(
            maybe, BLANKET, (PermissionRule(permission="read", pattern="<secret>", action="deny"),)
        ).action
        == "deny"
    )


def test_without_a_readable_folder_edits_are_free_too() -> None:
    assert (
        decide(Need(permission="edit", patterns=("src/a.py",)), rules_of("build")).action == "allow"
    )
