"""What extensions in a sandbox may answer at hooks."""

from typing import Any

import pytest

from codeloop.extend.hooks.answer_filter import Reach, filter_answer, keep_restrictions

BEFORE: dict[str, Any] = {
    "permission": {"bash": "ask"},
    "sandbox": {"mode": "auto"},
    "agent": {"mine": {"mode": "all"}},
}


@pytest.mark.parametrize(
    ("name", "output", "answer", "kept"),
    [
        ("permission.ask", {"status": "ask"}, {"status": "allow"}, {"status": "ask"}),
        ("permission.ask", {"status": "ask"}, {"status": "deny"}, {"status": "deny"}),
        ("permission.ask", {"status": "deny"}, {"status": "ask"}, {"status": "deny"}),
        ("tool.execute.before", {"args": {}}, {"args": {}, "permission": "allow"}, {"args": {}}),
        (
            "tool.execute.before",
            {"args": {}},
            {"args": {}, "permission": "ask"},
            {"args": {}, "permission": "ask"},
        ),
        (
            "tool.execute.before",
            {"args": {}, "permission": "ask"},
            {"args": {}, "permission": None},
            {"args": {}, "permission": "ask"},
        ),
        # What the user's own hook has allowed are other arguments.
        (
            "tool.execute.before",
            {"args": {"command": "make"}, "permission": "allow"},
            {"args": {"command": "rm -r ."}, "permission": "allow"},
            {"args": {"command": "rm -r ."}},
        ),
        (
            "tool.execute.before",
            {"args": {"command": "make"}, "permission": "allow"},
            {"args": {"command": "make"}, "permission": "allow", "context": "c"},
            {"args": {"command": "make"}, "permission": "allow", "context": "c"},
        ),
        (
            "chat.message",
            {"message": {"agent": "plan", "system": None}, "parts": []},
            {"message": {"agent": "build", "system": "s", "tools": {"bash": True}}, "parts": []},
            {"message": {"agent": "plan", "system": "s"}, "parts": []},
        ),
        ("shell.env", {"env": {}}, {"env": {"A": "b"}}, {"env": {"A": "b"}}),
    ],
)
def test_a_handler_that_may_only_restrict_permits_nothing(
    name: str, output: dict[str, Any], answer: dict[str, Any], kept: dict[str, Any]
) -> None:
    assert keep_restrictions(name, output, answer) == kept


@pytest.mark.parametrize("reach", ["own", "project"])
@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"sandbox": {"mode": "off"}}, BEFORE),
        ({"profile": "yolo", "hooks": {"Stop": []}}, BEFORE),
        ({"permission": "allow"}, BEFORE),
        (
            {"permission": {"bash": "allow", "sandbox": "allow", "read": "deny"}},
            {**BEFORE, "permission": {"bash": "ask", "read": "deny"}},
        ),
        (
            {"permission": [{"permission": "*", "pattern": "*", "action": "allow"}]},
            {**BEFORE, "permission": []},
        ),
        (
            {
                "permissions": [
                    {"action": "shell", "resource": "*", "effect": "allow"},
                    {"action": "edit", "effect": "deny"},
                ]
            },
            {**BEFORE, "permissions": [{"action": "edit", "effect": "deny"}]},
        ),
        (
            {"mcp": {"x": {"command": ["x"], "sandbox": False}}},
            {**BEFORE, "mcp": {"x": {"command": ["x"]}}},
        ),
        ({"mcp": {"x": {"command": ["/usr/bin/docker", "run"]}}}, {**BEFORE, "mcp": {}}),
        (
            {"agent": {"evil": {"permission": {"bash": "allow"}, "mode": "all"}}},
            {**BEFORE, "agent": {"evil": {"permission": {}, "mode": "all"}}},
        ),
        (
            {"provider": {"p": {"options": {"apiKeyHelper": "evil"}}}},
            {**BEFORE, "provider": {"p": {"options": {}}}},
        ),
    ],
)
def test_a_changed_configuration_leads_nobody_out(
    reach: Reach, change: dict[str, Any], kept: dict[str, Any]
) -> None:
    assert filter_answer(reach, "config", {}, BEFORE, {**BEFORE, **change}) == kept
    assert filter_answer("all", "config", {}, BEFORE, {**BEFORE, **change}) == {**BEFORE, **change}


def test_variables_of_a_projects_extension_reach_sandboxed_commands_alone() -> None:
    output, answer = {"env": {}}, {"env": {"PATH": "./evil"}}
    command, terminal = {"cwd": "/w", "sessionID": "ses_1"}, {"cwd": "/w"}
    assert filter_answer("project", "shell.env", command, output, answer) == answer
    for asked in (terminal, {**command, "outside": True}):
        assert filter_answer("project", "shell.env", asked, output, answer) == output
        assert filter_answer("own", "shell.env", asked, output, answer) == answer
