"""The tool `bash` under rules that allow some commands: what is known of the place decides,
not the text alone.
"""

import subprocess
from pathlib import Path

import pytest

from codeloop.permission.rules import decide
from codeloop.schema.permission import PermissionRule, Ruleset
from codeloop.tool.builtin.shell.bash import BashParams, bash
from tests.tool.context import TestContext, make_context


def allowing(*patterns: str) -> Ruleset:
    """Return rules that ask for everything but these."""
    asked = PermissionRule(permission="bash", pattern="*", action="ask")
    return (
        asked,
        *(
            PermissionRule(permission="bash", pattern=pattern, action="allow")
            for pattern in patterns
        ),
    )


async def decided(
    ctx: TestContext, rules: Ruleset, command: str, workdir: str | None = None
) -> tuple[str, str]:
    """Return what the rules make of a call's need for the shell, and why it is not proved."""
    ctx.asked.clear()
    await bash.run(BashParams(command=command, workdir=workdir), ctx)
    need = next(need for need in ctx.asked if need.permission == "bash")
    return decide(need, rules).action, need.unproven


@pytest.fixture
def ctx(tmp_path: Path) -> TestContext:
    made = make_context(tmp_path)
    subprocess.run(["git", "init", "-q", str(made.workspace.root)], check=True)
    return made


async def test_usual_lines_are_allowed_by_their_rules_and_looking_by_the_preset(
    ctx: TestContext,
) -> None:
    assert await decided(ctx, allowing("git status *"), "git status --short") == ("allow", "")
    assert await decided(ctx, allowing("<read-only>"), "git status && ls -la | head -3") == (
        "allow",
        "",
    )
    assert await decided(ctx, allowing("<read-only>"), "echo x > made") == ("ask", "")


async def test_a_bare_repository_in_the_clone_is_not_the_projects(ctx: TestContext) -> None:
    evil = ctx.workspace.root / "vendor" / "evil"
    subprocess.run(["git", "init", "-q", "--bare", str(evil)], check=True)
    for rules in (allowing("git status *"), allowing("<read-only>")):
        action, why = await decided(ctx, rules, "git status", workdir="vendor/evil")
        assert (action, "bare" in why) == ("ask", True)
        action, why = await decided(ctx, rules, "git -C vendor/evil status")
        assert (action, "bare" in why) == ("ask", True)


async def test_what_an_earlier_command_changed_is_remembered(ctx: TestContext) -> None:
    rules = allowing("git status *", "cd *")
    await bash.run(BashParams(command="export PATH=$PWD/evil:$PATH LC_ALL=C"), ctx)
    told = "PATH was changed by an earlier command (reset: true forgets it)"
    assert await decided(ctx, rules, "git status") == ("ask", told)
    await bash.run(BashParams(command="true", reset=True), ctx)
    assert await decided(ctx, rules, "git status") == ("allow", "")


async def test_a_path_that_leads_into_the_project_makes_the_names_there_uncertain(
    ctx: TestContext,
) -> None:
    ctx.workspace.environment["PATH"] = f"{ctx.workspace.root}/node_modules/.bin:/usr/bin:/bin"
    assert await decided(ctx, allowing("git status *"), "git status") == ("allow", "")
    planted = ctx.workspace.root / "node_modules" / ".bin" / "git"
    planted.parent.mkdir(parents=True)
    planted.symlink_to("/usr/bin/env")
    action, why = await decided(ctx, allowing("git status *"), "git status")
    assert (action, "leads into the project" in why) == ("ask", True)
    assert await decided(ctx, allowing("<read-only>"), "echo x; pwd; ls") == ("allow", "")


async def test_the_repositorys_configuration_can_keep_looking_from_being_free(
    ctx: TestContext,
) -> None:
    subprocess.run(["git", "config", "core.fsmonitor", "./x"], cwd=ctx.workspace.root, check=True)
    assert (await decided(ctx, allowing("<read-only>"), "git status"))[0] == "ask"


async def test_the_shell_is_bash_whatever_the_users_is(ctx: TestContext) -> None:
    ctx.workspace.environment["SHELL"] = "/bin/dash"
    canary = ctx.workspace.root / "CANARY"
    canary.touch()
    action, _ = await decided(ctx, allowing("echo *"), "echo $'a\\'; rm -f CANARY\n: \\'b'")
    assert action == "ask"
    assert canary.exists(), "to bash it is one text"
