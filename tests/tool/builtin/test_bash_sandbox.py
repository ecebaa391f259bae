"""What a sandboxed line was allowed is opened for that one command."""

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.permission.rules import decide
from codeloop.schema.config import SandboxConfig
from codeloop.schema.permission import PermissionRule
from codeloop.tool.builtin.shell.bash import BashParams, bash
from codeloop.workspace.sandbox.policy import PolicyInput
from codeloop.workspace.sandbox.sandbox import SandboxUnavailable
from tests.support.sandbox_support import find_sandbox
from tests.support.scripted_project import make_answer, make_call, open_scripted_project
from tests.tool.context import TestContext, make_context


@pytest.fixture
async def ctx(tmp_path: Path) -> AsyncIterator[TestContext]:
    """A project in a sandbox, with a home beside it; every question is answered with yes."""
    made = make_context(tmp_path)
    workspace = made.workspace
    workspace.sandbox = SandboxConfig(mode="required", network="off")
    (tmp_path / "other").mkdir()
    (workspace.root / ".env").write_text("KEY=1\n")
    (workspace.root / ".codeloop").mkdir()
    (workspace.root / ".codeloop/notes").write_text("before\n")
    shells = workspace.shells
    place = PolicyInput(workspace.root, workspace.root, workspace.scratch, workspace.environment)
    try:
        sandbox = await shells.sandboxes.enter(shells.make_policy(place, workspace.sandbox))
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    if sandbox.backend != "namespaces":
        pytest.skip("files in a project are hidden and protected by namespaces only")
    yield made
    await shells.close()


async def run(ctx: TestContext, command: str, **more: Any) -> str:
    return (await bash.run(BashParams(command=command, **more), ctx)).output


@pytest.mark.parametrize("name", ["other/file", "other/new", "other/sub/new", "new"])
async def test_a_write_outside_is_open_for_the_command_that_was_allowed_it(
    ctx: TestContext, tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    (tmp_path / "other/file").write_text("before\n")
    made = f"mkdir -p {file.parent} && " if not file.parent.is_dir() else ""
    assert await run(ctx, f"{made}echo one > {file}") == "(no output, exit code 0)"
    assert file.read_text() == "one\n"
    (ctx.workspace.root / "later.sh").write_text(
        f"echo two > {file}; echo two > {file}.two; rm {file}"
    )
    told = await run(ctx, "bash later.sh")
    assert f"blocked: write to ~/{Path(name).parts[0]}" in told or "No such file" in told
    assert file.read_text() == "one\n"
    assert not file.with_name(f"{file.name}.two").exists()


async def test_what_lies_beside_a_granted_file_stays_closed(
    ctx: TestContext, tmp_path: Path
) -> None:
    (tmp_path / "other/file").write_text("")
    (ctx.workspace.root / "try.sh").write_text(
        f"echo x > {tmp_path}/other/beside; echo x > {tmp_path}/.bashrc; echo y"
    )
    await run(ctx, f"bash try.sh > {tmp_path}/other/file")
    await run(ctx, f"bash try.sh > {tmp_path}/new")
    assert (tmp_path / "other/file").read_text() == (tmp_path / "new").read_text() == "y\n"
    assert not (tmp_path / "other/beside").exists()
    assert not (tmp_path / ".bashrc").exists()


async def test_a_secret_is_readable_for_the_command_that_was_allowed_it(
    ctx: TestContext, tmp_path: Path
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id_rsa").write_text("first key\n")
    (tmp_path / ".ssh/id_dsa").write_text("second key\n")
    (ctx.workspace.root / "try.sh").write_text(
        f"cat .env {tmp_path}/.ssh/id_rsa {tmp_path}/.ssh/id_dsa 2>&1"
    )
    assert await run(ctx, "cat .env") == "KEY=1\n"
    shown = await run(ctx, f"cat {tmp_path}/.ssh/id_rsa; bash try.sh")
    assert shown.count("first key") == 2
    assert "second key" not in shown
    assert "KEY=1" not in shown
    after = await run(ctx, "bash try.sh")
    assert "key\n" not in after
    assert "KEY=1" not in after


@pytest.mark.slow
async def test_a_protected_file_is_open_for_the_command_that_was_allowed_it(
    ctx: TestContext,
) -> None:
    own = ctx.workspace.root / ".codeloop"
    (ctx.workspace.root / "try.sh").write_text(
        "echo x > .codeloop/other; echo three > .codeloop/notes"
    )
    assert "Read-only" in await run(ctx, "echo two > .codeloop/notes; bash try.sh 2>&1 | head -1")
    assert (own / "notes").read_text() == "three\n"
    assert await run(ctx, "echo new > .codeloop/new") == "(no output, exit code 0)"
    assert (own / "new").read_text() == "new\n"
    assert "blocked" in await run(ctx, "bash try.sh")
    assert sorted(path.name for path in own.iterdir()) == ["new", "notes"]
    assert (
        await run(ctx, "echo '{}' > codeloop.json"),
        (ctx.workspace.root / "codeloop.json").read_text(),
    ) == (
        "(no output, exit code 0)",
        "{}\n",
    )


async def test_the_temporary_folder_is_private_and_needs_no_question(
    ctx: TestContext, tmp_path: Path
) -> None:
    name = f"/tmp/{ctx.session_id}"
    assert (
        await run(ctx, f"mkdir {name} && echo private > {name}/file; cat {name}/file")
        == "private\n"
    )
    assert await run(ctx, f"cat < {name}/file; rm -r {name}") == "private\n"
    assert {need.permission for need in ctx.asked} == {"bash"}
    assert not Path(name).exists()


async def test_a_link_out_of_the_temporary_folder_is_asked_about_by_its_target(
    ctx: TestContext, tmp_path: Path
) -> None:
    await run(
        ctx,
        f"ln -s {tmp_path}/other /tmp/folder; ln -s /tmp/folder /tmp/again; ln -s /tmp/loop /tmp/loop",
    )
    ctx.asked.clear()
    await run(ctx, "echo x > /tmp/again/file; echo x > /tmp/loop")
    assert ctx.asked[0].patterns == (f"{tmp_path}/other/file",)
    assert (tmp_path / "other/file").read_text() == "x\n"
    ctx.asked.clear()
    await run(ctx, "ls /tmp")  # the project lies in it
    assert "external_directory" in {need.permission for need in ctx.asked}


async def test_one_question_is_about_leaving_and_all_that_the_command_needs(
    ctx: TestContext, tmp_path: Path
) -> None:
    line = f"echo left; echo x > {tmp_path}/other/file"
    assert "left" in await run(ctx, line, outside="it writes elsewhere")
    assert (tmp_path / "other/file").read_text() == "x\n"
    leave, *others = ctx.asked
    assert (leave.permission, leave.patterns) == (
        "sandbox",
        ("echo left", f"echo x > {tmp_path}/other/file"),
    )
    assert leave.metadata == {"command": line, "reason": "it writes elsewhere"}
    assert leave.always == ()
    assert [need.permission for need in others] == ["external_directory", "bash", "edit"]
    assert all(need.traits == () for need in others)


@pytest.mark.slow
async def test_a_rule_that_lets_a_command_leave_needs_proof_as_any_other(ctx: TestContext) -> None:
    rules = (PermissionRule(permission="sandbox", pattern="git push *", action="allow"),)
    decided: dict[str, str] = {}
    made = subprocess.run(["git", "init", "-q"], cwd=ctx.workspace.root, check=False)
    assert made.returncode == 0
    subprocess.run(
        ["git", "remote", "add", "origin", "https://a.example/b"],
        cwd=ctx.workspace.root,
        check=True,
    )
    lines = (
        "git push origin",
        "git push; touch x",
        'git push "$x"',
        "git push --receive-pack=./x origin",
    )
    for line in lines:
        ctx.asked.clear()
        await run(ctx, line, outside="to push")
        decided[line] = decide(
            next(need for need in ctx.asked if need.permission == "sandbox"), rules
        ).action
    assert list(decided.values()) == ["allow", "ask", "ask", "ask"]


async def test_what_ran_inside_does_not_steer_what_is_let_out(
    ctx: TestContext, tmp_path: Path
) -> None:
    evil = ctx.workspace.root / "evil"
    evil.mkdir()
    (evil / "id").write_text(f"#!/bin/sh\ntouch {tmp_path}/other/planted\n")
    (evil / "id").chmod(0o755)
    await run(ctx, "cd evil; export PATH=$PWD:$PATH A=1")
    assert "uid=" in await run(ctx, "id; echo ${A-none}", outside="it needs to")
    assert not (tmp_path / "other/planted").exists()
    (asked,) = [need for need in ctx.asked if need.permission == "sandbox"]
    assert asked.metadata["workdir"] == str(evil)


@pytest.mark.skipif(find_sandbox() != "namespaces", reason="other sandboxes hide no folders")
async def test_a_saved_output_is_readable_by_the_first_commands_of_a_project(
    tmp_path: Path,
) -> None:
    calls = [
        make_call("bash", command="seq 1 20000"),
        make_call("bash", command="find ~ -name 'tool_*' -type f -exec tail -n 1 {} + 2> errors"),
    ]
    script = [*map(make_answer, calls), ScriptedAnswer(text="Done.")]
    async with open_scripted_project(tmp_path, script, sandbox={"mode": "required"}) as it:
        await it.prompt()
        assert "the whole is in tool_" in it.results()[0]
        assert it.results()[1] == "20000\n"
