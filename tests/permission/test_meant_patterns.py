"""A rule means what a person means by it: `./src`, `src/`, `"rm": "deny"`."""

import pytest

from codeloop.permission.rules import RuleLayer, decide, list_denied_patterns
from codeloop.schema.permission import Action, Need, PermissionRule

DENIED = [
    ("read", "./src/**", "src/a/b.py"),
    ("read", "src/", "src/a/b.py"),
    ("read", "src", "src/a/b.py"),
    ("read", "./src", "src"),
    ("read", ".//src//a/", "src/a/b.py"),
    ("edit", "src", "src/a/b.py"),
    ("write", "./src/", "src/a/b.py"),
    ("view", "src/", "src/a"),
    ("read", "./a.py", "a.py"),
    ("read", "~/docs/", "~/docs/x"),
    ("bash", "rm", "rm -rf x"),
    ("bash", "git push", "git push origin main"),
    ("bash", "git push", "git push"),
    ("shell", "sudo", "sudo ls"),
]
NOT_DENIED = [
    ("read", "src", "src2/a.py"),
    ("read", "src/", "lib/src/a.py"),
    ("bash", "rm", "rmdir x"),
    ("bash", "git push", "git pushx"),
    ("webfetch", "a", "a b"),
]
OWN_NAMES = {"write": "edit", "view": "read", "shell": "bash"}


def judge(permission: str, pattern: str, text: str, action: Action = "deny") -> Action:
    other: Action = "allow" if action != "allow" else "deny"
    rules = (
        PermissionRule(permission="*", pattern="*", action=other),
        PermissionRule(permission=permission, pattern=pattern, action=action),
    )
    return decide(
        Need(permission=OWN_NAMES.get(permission, permission), patterns=(text,)), rules
    ).action


@pytest.mark.parametrize(("permission", "pattern", "text"), DENIED)
def test_a_denial_means_what_it_says(
    permission: str, pattern: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert judge(permission, pattern, text.replace("~", "/home/me")) == "deny"


@pytest.mark.parametrize(("permission", "pattern", "text"), NOT_DENIED)
def test_a_denial_means_no_more(permission: str, pattern: str, text: str) -> None:
    assert judge(permission, pattern, text) == "allow"


def test_what_is_allowed_is_only_what_it_says() -> None:
    assert judge("bash", "rm", "rm -rf x", "allow") == "deny"
    assert judge("read", "src", "src/a", "allow") == "deny"
    assert judge("read", "./src/", "src/a", "allow") == "allow"


def test_the_sandbox_gets_the_same() -> None:
    rules = (PermissionRule(permission="read", pattern="./src/", action="deny"),)
    assert list_denied_patterns("read", [(RuleLayer("", rules),)]) == ("src", "src/*")


OTHER_NAMES = {
    "bash": "Bash Shell shell run_shell_command execute_command local_shell run_terminal_cmd exec_command"
    " shell_command PowerShell BashTool",
    "edit": "Multi* Edit Write MultiEdit NotebookEdit write_file WriteFile replace apply_patch str_replace_editor",
    "skill": "Skill SKILL",
    "external_directory": "External_Directory ExternalDirectory External*",
    "sandbox": "Sandbox",
    "doom_loop": "Doom_Loop",
    "read": "ReadTool Read read_file ReadFile view NotebookRead",
    "list": "LS list_directory",
    "grep": "Grep search_file_content",
    "glob": "Glob find_files",
    "webfetch": "WebFetch web_fetch FetchURL",
    "websearch": "Web* WebSearch google_web_search SearchWeb",
    "task": "Task Agent",
    "todowrite": "TodoWrite SetTodoList update_plan",
    "question": "AskUserQuestion",
    "bash_kill": "KillShell KillBash",
    "github_issue": "mcp__github mcp__github__* mcp__github__issue mcp__*",
    "my_server_x": "mcp__my.server__x mcp__my.server mcp__*__x",
}


@pytest.mark.parametrize(
    ("permission", "name"),
    [(permission, name) for permission, names in OTHER_NAMES.items() for name in names.split()],
)
def test_other_programs_names_restrict_our_tools_and_allow_nothing(
    permission: str, name: str
) -> None:
    need = Need(permission=permission, patterns=("x",))
    rules = (
        PermissionRule(permission="*", pattern="*", action="allow"),
        PermissionRule(permission=name, pattern="*", action="deny"),
    )
    assert decide(need, rules).action == "deny"
    allowing = (
        PermissionRule(permission="*", pattern="*", action="deny"),
        PermissionRule(permission=name, pattern="*", action="allow"),
    )
    assert decide(need, allowing).action == "deny"


def test_a_name_of_an_extension_s_tool_means_nothing_else() -> None:
    rules = (
        PermissionRule(permission="*", pattern="*", action="allow"),
        PermissionRule(permission="github_issues", pattern="*", action="deny"),
    )
    for permission in ("bash", "edit", "read", "github_issue"):
        assert decide(Need(permission=permission, patterns=("x",)), rules).action == "allow"


@pytest.mark.parametrize("name", ["mcp__*", "mcp__*__*", "mcp__plan", "mcp__*__write"])
@pytest.mark.parametrize(
    "permission", ["external_directory", "bash_output", "plan_exit", "mcp_write", "bash"]
)
def test_a_rule_for_tools_of_servers_is_about_none_of_our_permissions(
    name: str, permission: str
) -> None:
    rules = (
        PermissionRule(permission="*", pattern="*", action="allow"),
        PermissionRule(permission=name, pattern="*", action="deny"),
    )
    assert decide(Need(permission=permission, patterns=("x",)), rules).action == "allow"
