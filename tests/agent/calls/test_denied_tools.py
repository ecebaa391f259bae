"""A tool that a rule denies by its name is not run when it is called all the same,
nor are its twins.
"""

from pathlib import Path
from typing import Any

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.part import ToolStateError
from codeloop.schema.permission import PermissionRule
from codeloop.schema.wire import replace
from tests.support.scripted_project import make_answer, make_call, open_scripted_project

DONE = ScriptedAnswer(text="Done.")
PATCH = "*** Begin Patch\n*** Add File: made.txt\n+x\n*** End Patch"
CALLS: dict[str, Any] = {
    "write": {"filePath": "made.txt", "content": "x"},
    "edit": {"filePath": "made.txt", "oldString": "", "newString": "x"},
    "multiedit": {"filePath": "made.txt", "edits": [{"oldString": "", "newString": "x"}]},
    "apply_patch": {"patchText": PATCH},
    "patch": {"patchText": PATCH},
    "batch": {
        "tool_calls": [{"tool": "write", "parameters": {"filePath": "made.txt", "content": "x"}}]
    },
}


@pytest.mark.parametrize(
    "denied", ["write", "multiedit", "patch", "wri*", "*_patch", "Write", "write_file"]
)
@pytest.mark.parametrize("called", list(CALLS))
async def test_a_rule_for_a_tool_holds_for_all_that_change_files(
    tmp_path: Path, denied: str, called: str
) -> None:
    script = [make_answer(make_call(called, **CALLS[called])), DONE]
    async with open_scripted_project(
        tmp_path, script, permission={"*": "allow", denied: "deny"}
    ) as it:
        await it.prompt()
        assert not (it.work / "made.txt").exists()
        assert "Permission denied" in it.results()[0]


@pytest.mark.parametrize("denied", ["batch", "bash_output", "bash_kill", "task_output"])
async def test_a_tool_with_another_permission_is_denied_by_its_name(
    tmp_path: Path, denied: str
) -> None:
    arguments = {"batch": CALLS["batch"], "task_output": {"task_id": "ses_1"}}.get(
        denied, {"id": "1"}
    )
    script = [make_answer(make_call(denied, **arguments)), DONE]
    async with open_scripted_project(
        tmp_path, script, permission={"*": "allow", denied: "deny"}
    ) as it:
        await it.prompt()
        assert not (it.work / "made.txt").exists()
        assert f"Permission denied by the rule {denied} *: deny" in it.results()[0]


@pytest.mark.parametrize(
    ("denied", "arguments"),
    [("bash_kill", {"id": "1", "stop": True}), ("task_output", {"id": "ses_1"})],
)
async def test_a_denial_holds_where_another_tool_does_the_same(
    tmp_path: Path, denied: str, arguments: dict[str, Any]
) -> None:
    script = [make_answer(make_call("bash_output", **arguments)), DONE]
    async with open_scripted_project(
        tmp_path, script, permission={"*": "allow", denied: "deny"}
    ) as it:
        await it.prompt()
        assert f"Permission denied by the rule {denied} *: deny" in it.results()[0]


@pytest.mark.parametrize(
    ("denied", "called"),
    [
        ("view", "read"),
        ("view", "view"),
        ("ls", "list"),
        ("ls", "ls"),
        ("fetch", "webfetch"),
        ("fetch", "fetch"),
    ],
)
async def test_a_rule_by_another_program_s_name_of_a_tool_holds_for_it(
    tmp_path: Path, denied: str, called: str
) -> None:
    arguments = {"filePath": "a.py"} if denied == "view" else {"path": "."}
    if denied == "fetch":
        arguments = {"url": "http://127.0.0.1:9/", "format": "text"}
    script = [make_answer(make_call(called, **arguments)), DONE]
    async with open_scripted_project(
        tmp_path, script, permission={"*": "allow", denied: "deny"}
    ) as it:
        (it.work / "a.py").write_text("x = 1\n")
        await it.prompt()
        assert f"Permission denied by the rule {denied} *: deny" in it.results()[0]
        offered = {spec.name for spec in it.model.requests[0].tools}
        assert not offered & {"view": {"read"}, "ls": {"list"}, "fetch": {"webfetch"}}[denied]


@pytest.mark.parametrize(
    ("denied", "command", "is_run"),
    [
        ("Bash", "touch made.txt", False),
        ("run_shell_command", "touch made.txt", False),
        ("Bash(touch *)", "touch made.txt", False),
        ("Bash(touch:*)", "touch made.txt", False),
        ("Bash(rm *)", "touch made.txt", True),
    ],
)
async def test_a_prompt_may_take_tools_away_by_other_programs_names(
    tmp_path: Path, denied: str, command: str, *, is_run: bool
) -> None:
    script = [make_answer(make_call("bash", command=command)), DONE]
    async with open_scripted_project(tmp_path, script, permission={"*": "allow"}) as it:
        await it.prompt("go", tools={denied: False})
        assert (it.work / "made.txt").exists() is is_run


@pytest.mark.parametrize("denied", ["Bash(touch *)", "shell(touch:*)"])
async def test_a_rule_may_hold_its_pattern_in_brackets(tmp_path: Path, denied: str) -> None:
    script = [
        make_answer(make_call("bash", command="touch made.txt")),
        make_answer(make_call("bash", command="mkdir made")),
        DONE,
    ]
    async with open_scripted_project(
        tmp_path, script, permission={"*": "allow", denied: "deny"}
    ) as it:
        await it.prompt()
        assert not (it.work / "made.txt").exists()
        assert (it.work / "made").is_dir()


async def test_what_a_prompt_or_a_client_takes_away_is_not_run(tmp_path: Path) -> None:
    script = [make_answer(make_call("write", **CALLS["write"])), DONE] * 2
    async with open_scripted_project(tmp_path, script, permission={"*": "allow"}) as it:
        await it.prompt("go", tools={"write": False})
        assert "Permission denied by the rule write *: deny" in it.results()[0]
        rules = [PermissionRule(permission="write", pattern="*", action="deny")]
        it.project.store.update_session(
            it.session_id, lambda session: replace(session, permission=rules)
        )
        await it.prompt("again")
        assert not (it.work / "made.txt").exists()
        assert "Permission denied by the rule write *: deny" in it.results()[1]


async def test_edits_are_done_in_whatever_form_where_edit_is_allowed(tmp_path: Path) -> None:
    script = [make_answer(make_call("multiedit", **CALLS["multiedit"])), DONE]
    async with open_scripted_project(
        tmp_path, script, permission={"*": "deny", "edit": "allow"}
    ) as it:
        await it.prompt()
        assert (it.work / "made.txt").read_text() == "x"


async def test_a_rule_that_denies_call_after_call_is_named_as_the_reason_to_stop(
    tmp_path: Path,
) -> None:
    lines = ("git push", "git push --force", "cd . && git push", "sh -c 'git push'")
    script = [*(make_answer(make_call("bash", command=line)) for line in lines), DONE]
    rules = {"*": "allow", "bash": {"*": "allow", "git push *": "deny", "git push": "deny"}}
    async with open_scripted_project(tmp_path, script, permission=rules) as it:
        await it.prompt()
        advice = [
            str((part.state.metadata or {}).get("advice"))
            for part in it.calls()
            if isinstance(part.state, ToolStateError)
        ]
    assert ["calls of this turn were refused" in each for each in advice] == [
        False,
        False,
        True,
        True,
    ]
    assert "(4 calls of this turn were refused by this rule" in advice[-1]
