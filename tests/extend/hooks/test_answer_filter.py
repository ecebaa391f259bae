"""What extensions in a sandbox may answer at hooks."""

from typing import Any

import pytest

from codeloop.extend.hooks.answer_filter import Reach, filter_answer

BEFORE: dict[str, Any] = {
    "permission": {"bash": "ask"},
    "sandbox": {"mode": "auto"},
    "agent": {"mine": {"mode": "all"}},
}


@pytest.mark.parametrize(
    ("reach", "permission", "status"),
    [("all", "sandbox", "allow"), ("own", "sandbox", "ask"), ("own", "bash", "allow"), ("project", "bash", "ask")],
)
def test_leaving_the_sandbox_is_allowed_by_none_in_one_and_nothing_by_a_projects(
    reach: Reach, permission: str, status: str
) -> None:
    asked, output = {"permission": permission}, {"status": "ask"}
    assert filter_answer(reach, "permission.ask", asked, output, {"status": "allow"})["status"] == status
    assert filter_answer(reach, "permission.ask", asked, output, {"status": "deny"}) == {"status": "deny"}


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
        ({"permission": [{"permission": "*", "pattern": "*", "action": "allow"}]}, {**BEFORE, "permission": []}),
        ({"mcp": {"x": {"command": ["x"], "sandbox": False}}}, {**BEFORE, "mcp": {"x": {"command": ["x"]}}}),
        ({"mcp": {"x": {"command": ["/usr/bin/docker", "run"]}}}, {**BEFORE, "mcp": {}}),
        (
            {"agent": {"evil": {"permission": {"bash": "allow"}, "mode": "all"}}},
            {**BEFORE, "agent": {"evil": {"permission": {}, "mode": "all"}}},
        ),
        ({"provider": {"p": {"options": {"apiKeyHelper": "evil"}}}}, {**BEFORE, "provider": {"p": {"options": {}}}}),
    ],
)
def test_a_changed_configuration_leads_nobody_out(reach: Reach, change: dict[str, Any], kept: dict[str, Any]) -> None:
    assert filter_answer(reach, "config", {}, BEFORE, {**BEFORE, **change}) == kept
    assert filter_answer("all", "config", {}, BEFORE, {**BEFORE, **change}) == {**BEFORE, **change}


def test_variables_of_a_projects_extension_reach_sandboxed_commands_alone() -> None:
    output, answer = {"env": {}}, {"env": {"PATH": "./evil"}}
    command, terminal = {"cwd": "/w", "sessionID": "ses_1"}, {"cwd": "/w"}
    assert filter_answer("project", "shell.env", command, output, answer) == answer
    for asked in (terminal, {**command, "outside": True}):
        assert filter_answer("project", "shell.env", asked, output, answer) == output
        assert filter_answer("own", "shell.env", asked, output, answer) == answer
