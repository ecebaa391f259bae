"""A call asks one question, which shows what it would do;
nobody is asked for what is then denied.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codeloop.client.questions.permission_text import describe_request
from codeloop.client.questions.requester import Requester
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.part import ToolStateError
from tests.support.scripted_project import make_answer, make_call, open_scripted_project

OK = ScriptedAnswer(text="Done.")
PATCH = "*** Begin Patch\n*** Update File: {0}/a.txt\n@@\n-old\n+echo new\n*** Add File: {0}/b.sh\n+x\n*** End Patch"


def writing(tool: str, out: Path) -> dict[str, Any]:
    """Return the arguments of a call that writes `echo new` outside the project."""
    edit = {"oldString": "old", "newString": "echo new"}
    made: dict[str, dict[str, Any]] = {
        "write": {"filePath": f"{out}/b.sh", "content": "echo new\n"},
        "edit": {"filePath": f"{out}/a.txt", **edit},
        "multiedit": {"filePath": f"{out}/a.txt", "edits": [edit]},
        "apply_patch": {"patchText": PATCH.format(out)},
    }
    return made[tool]


@pytest.mark.parametrize("rules", [{}, {"edit": "ask"}, {"*": "ask"}])
@pytest.mark.parametrize("tool", ["write", "edit", "multiedit", "apply_patch"])
async def test_what_is_written_outside_is_asked_about_once_and_shown(
    tmp_path: Path, tool: str, rules: dict[str, str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.txt").write_text("old\n")
    script = [make_answer(make_call(tool, **writing(tool, out))), OK]
    async with open_scripted_project(
        tmp_path, script, permission={"multiedit": "allow", **rules}
    ) as it:
        turn = asyncio.create_task(it.prompt())
        request = await it.question()
        assert request.permission == "external_directory"
        assert {"filepath", "parentDir"} <= set(request.metadata)
        text = describe_request(request, Requester(tool), 80, 10)
        shown = "\n".join(row for _, row in text.rows)
        assert "echo new" in shown
        # A path that is too long for the title stands below it, over as many rows as it needs.
        assert str(out) in text.title or str(out) in "".join(row[4:] for _, row in text.rows)
        await it.answer(request, "once")
        await turn
        assert "echo new" in (out / ("b.sh" if tool == "write" else "a.txt")).read_text()


@pytest.mark.parametrize("tool", ["write", "edit", "apply_patch"])
async def test_why_a_change_outside_fails_is_only_read_after_a_yes_to_a_question_that_shows_it(
    tmp_path: Path, tool: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "b.sh").write_text("secret\n")  # was not read, and does not hold what is to be replaced
    (out / "a.txt").write_text("secret\n")
    async with open_scripted_project(
        tmp_path, [make_answer(make_call(tool, **writing(tool, out))), OK]
    ) as it:
        turn = asyncio.create_task(it.prompt())
        request = await it.question()
        rows = describe_request(request, Requester(tool), 80, 20).rows
        assert "echo new" in "\n".join(row for _, row in rows)
        assert "secret" not in str(request.metadata)
        await it.answer(request, "once")
        await turn
        assert isinstance(it.calls()[0].state, ToolStateError)


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("write", {"filePath": "{out}/b.sh", "content": "x"}),
        ("write", {"filePath": ".git/hooks/pre-commit", "content": "x"}),
        ("edit", {"filePath": "{out}/a.txt", "oldString": "old", "newString": "x"}),
        ("apply_patch", {"patchText": PATCH}),
        ("bash", {"command": "echo x > {out}/b.sh", "description": "writes"}),
        ("bash", {"command": "make", "description": "builds", "outside": "it needs docker"}),
        ("bash", {"command": "git push", "description": "pushes"}),
        ("read", {"filePath": "{out}/.env"}),
        ("grep", {"pattern": "x", "path": "{out}/.env"}),
    ],
)
@pytest.mark.parametrize("how", ["profile", "rule"])
async def test_nobody_is_asked_for_what_is_then_denied(
    tmp_path: Path, tool: str, given: dict[str, str], how: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.txt").write_text("old\n")
    (out / ".env").write_text("KEY=1\n")
    made = {
        key: value.format(out) if value is PATCH else value.replace("{out}", str(out))
        for key, value in given.items()
    }
    denied = {"edit": "deny", "bash": "deny", "read": {"<secret>": "deny"}}
    settings: dict[str, Any] = {"profile": "plan"} if how == "profile" else {"permission": denied}
    if how == "profile" and tool in {"read", "grep"}:
        settings["permission"] = {"read": {"<secret>": "deny"}}
    async with open_scripted_project(
        tmp_path, [*(make_answer(make_call(tool, **made)) for _ in range(3)), OK], **settings
    ) as it:
        await it.prompt()
        assert all("Permission denied" in result for result in it.results())
        assert {decision.by for decision in it.project.store.permissions.list_decisions()} == {
            "rule"
        }
