"""The base rules decide as documented."""

from pathlib import Path

import pytest

from codeloop.permission.defaults import agent_rules, base_rules
from codeloop.permission.rules import decide, is_offered
from codeloop.permission.shell.analyse import analyse, need_of
from codeloop.schema.permission import Action, Need, PermissionRule, Ruleset

SCRATCH = Path("/data/scratch")
SKILLS = Path("/data/skills")


def rules_of(agent: str, *readable: Path) -> Ruleset:
    return (*base_rules(SCRATCH, *readable), *agent_rules(agent))


def action(agent: str, permission: str, pattern: str) -> Action:
    return decide(Need(permission=permission, patterns=(pattern,)), rules_of(agent, SKILLS)).action


@pytest.mark.parametrize(
    ("agent", "permission", "pattern", "expected"),
    [
        ("build", "bash", "make", "allow"),
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
        ("explore", "bash", "ls", "allow"),
        ("explore", "external_directory", "/etc/*", "deny"),
        ("explore", "read", ".env", "ask"),
        ("title", "read", "a", "deny"),
        ("summary", "bash", "ls", "deny"),
        ("compaction", "edit", "a", "deny"),
        ("mine", "bash", "ls", "allow"),
        ("mine", "question", "*", "deny"),
    ],
)
def test_the_built_in_agents(agent: str, permission: str, pattern: str, expected: Action) -> None:
    assert action(agent, permission, pattern) == expected


def test_a_plain_session_runs_any_line_without_a_question() -> None:
    for line in ('for f in *; do echo "$f"; done', 'eval "$x"', "$cmd", "(("):
        assert decide(need_of(line, analyse(line)), rules_of("build")).action == "allow"


def test_a_persons_own_rule_wins_over_the_git_folder() -> None:
    own = (PermissionRule(permission="edit", pattern=".git/info/exclude", action="allow"),)
    wanted = Need(permission="edit", patterns=(".git/info/exclude",))
    assert decide(wanted, rules_of("build"), own).action == "allow"


def test_what_an_agent_can_never_use_is_not_offered() -> None:
    assert not is_offered("todowrite", rules_of("general"))
    assert not is_offered("edit", rules_of("explore"))
    assert is_offered("edit", rules_of("plan"))
    assert not is_offered("read", rules_of("title"))
