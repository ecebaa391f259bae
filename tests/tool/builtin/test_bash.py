import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from codeloop.kit.processes import list_processes
from codeloop.permission.gate import Denied
from codeloop.schema.event import make_session_created
from codeloop.schema.ids import new_id
from codeloop.schema.part import ToolStateCompleted, ToolTime
from codeloop.schema.wire import replace
from codeloop.tool.builtin.files.read import ReadParams, read
from codeloop.tool.builtin.search.grep import GrepParams, grep
from codeloop.tool.builtin.shell.background_commands import (
    BashKillParams,
    BashOutputParams,
    bash_kill,
    bash_output,
)
from codeloop.tool.builtin.shell.bash import BashParams, bash
from codeloop.tool.tool import ToolFailure, ToolResult
from codeloop.workspace.tool_bounds import ToolBounds
from tests.support.scripted_project import wait_until
from tests.tool.context import TestContext, make_context


async def run(ctx: TestContext, command: str, **more: Any) -> ToolResult:
    return await bash.run(BashParams(command=command, **more), ctx)


async def test_a_command_gives_its_output_and_metadata(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    result = await run(ctx, "echo hi; exit 3", description="Says hi")
    told = "hi\n\n<shell_metadata>\nexit code 3\n</shell_metadata>"
    assert (result.title, result.output) == ("echo hi; exit 3", told)
    duration = result.metadata.pop("duration")
    assert 0 <= duration < 60_000
    assert result.metadata.pop("modelNotes") == told.removeprefix("hi")
    expected = {
        "output": "hi\n",
        "exit": 3,
        "truncated": False,
        "lines": 1,
        "description": "Says hi",
    }
    assert result.metadata == expected


async def test_a_timeout_above_the_longest_is_lowered_and_that_is_said(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    ctx.workspace.bounds = ToolBounds(timeout_ms=90_000, max_timeout_ms=100_000)
    assert (
        "Its timeout was lowered to 100000 ms, the longest."
        in (await run(ctx, "true", timeout=100_001)).output
    )
    assert "lowered" not in (await run(ctx, "true", timeout=100_000)).output


async def test_users_read_all_that_a_command_prints_and_no_notes_for_the_model(
    tmp_path: Path,
) -> None:
    printed = "a\n\n<shell_metadata>\nprinted by the command\n</shell_metadata>"
    for ending, shown in (("", f"{printed}\n"), ("; exit 3", printed)):
        result = await run(make_context(tmp_path), f"printf '%s\\n' '{printed}'{ending}")
        assert stored(result).for_user == shown
        later = replace(result, output=f"{result.output}\n\nAn extension adds this.")
        assert stored(later).for_user == f"{shown}\n\nAn extension adds this."


def test_only_what_older_versions_stored_of_commands_is_cut_at_the_mark() -> None:
    output = "a\n\n<shell_metadata>\nexit code 3\n</shell_metadata>"
    assert stored(ToolResult("", output, {"exit": 3})).for_user == "a"
    # A file that was read.
    assert stored(ToolResult("", output, {"truncated": False})).for_user == output


def stored(result: ToolResult) -> ToolStateCompleted:
    """Return a result as it is stored."""
    return ToolStateCompleted(
        input={},
        output=result.output,
        title="",
        metadata=result.metadata,
        time=ToolTime(start=0, end=0),
    )


async def test_no_output_is_said(tmp_path: Path) -> None:
    assert (await run(make_context(tmp_path), "true")).output == "(no output, exit code 0)"


async def test_each_simple_command_is_asked_for(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    await run(ctx, "echo hi && exit 3")
    (need,) = ctx.asked
    assert (need.permission, need.patterns, need.always) == (
        "bash",
        ("echo hi", "exit 3"),
        ("echo *", "exit *"),
    )
    assert need.metadata == {"command": "echo hi && exit 3"}


async def test_a_denied_command_does_not_run(tmp_path: Path) -> None:
    ctx = make_context(tmp_path, deny=["bash:touch *"])
    with pytest.raises(Denied):
        await run(ctx, "touch made; echo x")
    assert not (ctx.workspace.root / "made").exists()


@pytest.mark.parametrize(
    ("command", "more", "name"),
    [
        ("cat {out}/file", {}, "file"),
        ("echo x > {out}/new", {}, "new"),
        ("pwd", {"workdir": "{out}"}, "*"),
        ("ls {out}", {}, "*"),
        ("cat ../out/file", {}, "file"),
    ],
)
async def test_what_is_outside_is_asked_for_first_by_its_name_and_always_by_its_folder(
    tmp_path: Path, command: str, more: dict[str, str], name: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "file").write_text("x")
    ctx = make_context(tmp_path, deny=["external_directory"])
    command = command.format(out=out)
    with pytest.raises(Denied):
        await run(ctx, command, **{key: value.format(out=out) for key, value in more.items()})
    (need,) = ctx.asked
    assert (need.patterns, need.always) == ((f"{out}/{name}",), (f"{out}/*",))
    assert need.metadata == {
        "command": command,
        "directories": [str(out)],
        "patterns": [f"{out}/{name}"],
    }
    assert not (out / "new").exists()


async def test_a_link_out_of_the_work_tree_names_its_real_target(tmp_path: Path) -> None:
    ctx = make_context(tmp_path, deny=["external_directory"])
    (tmp_path / "out").mkdir()
    (ctx.workspace.root / "link").symlink_to(tmp_path / "out")
    with pytest.raises(Denied):
        await run(ctx, "cat link/file")
    assert ctx.asked[0].patterns == (f"{tmp_path}/out/file",)


@pytest.mark.parametrize(
    "command", ["echo x > .git/hooks/pre-commit", "cd .git/hooks; cp ../../x pre-commit"]
)
async def test_what_may_change_the_repository_data_is_asked_about_as_an_edit(
    tmp_path: Path, command: str
) -> None:
    ctx = make_context(tmp_path, deny=["edit:.git/*"])
    (ctx.workspace.root / ".git/hooks").mkdir(parents=True)
    assert (await run(ctx, "ls .git/hooks")).metadata["exit"] == 0
    with pytest.raises(Denied):
        await run(ctx, command)
    assert list((ctx.workspace.root / ".git/hooks").iterdir()) == []


@pytest.mark.parametrize(
    "command", ["cat ~nobody-here/x", "cat $'a\\x00b'", "cd ''", "ls " + "x" * 5000]
)
async def test_paths_that_cannot_be_do_no_harm(tmp_path: Path, command: str) -> None:
    result = await run(make_context(tmp_path), command)
    assert result.metadata["exit"] in {0, 1, 2}


async def test_standing_outside_is_asked_about_in_the_next_call(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    await run(ctx, "cd /")
    ctx.asked.clear()
    await run(ctx, "ls")
    assert [need.permission for need in ctx.asked] == ["external_directory", "bash"]
    ctx.asked.clear()
    assert (await run(ctx, "pwd", reset=True)).output == f"{ctx.workspace.directory}\n"
    assert [need.permission for need in ctx.asked] == ["bash"]


async def test_at_its_timeout_a_command_goes_on_in_the_background(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    for timeout in (150, 5_000, 60_000):  # a busy machine may start nothing within the first
        result = await run(
            ctx,
            "echo before; until [ -e go ]; do sleep 0.02; done; echo after; exit 4",
            timeout=timeout,
        )
        name = result.metadata["id"]
        assert f"It goes on in the background as {name}." in result.output
        assert result.output.endswith("\n</shell_metadata>")
        assert (result.metadata["exit"], result.metadata["timedOut"]) == (None, True)
        assert result.metadata["notes"][0].endswith(f"It goes on in the background as {name}.")
        if not result.output.startswith("("):
            break
    assert result.output.startswith("before\n\n<shell_metadata>\n")
    job = ctx.workspace.shells.jobs.find_job(name)
    assert job is not None
    assert (job.is_overdue, job.call_id) == (True, ctx.call_id)
    (ctx.workspace.root / "go").touch()
    await job.wait_for_end()
    rest = await bash_output.run(BashOutputParams(id=name), ctx)
    assert (rest.metadata["status"], rest.metadata["exit"], rest.metadata["output"]) == (
        "exited",
        4,
        "after\n",
    )
    assert Path(rest.metadata["outputPath"]).read_text() == "before\nafter\n"


async def test_a_build_has_more_time_than_other_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = make_context(tmp_path)
    monkeypatch.setattr(ctx.workspace.shells, "choose_timeout_ms", lambda *_: 1)
    ctx.services.takes_long = lambda line: "make" in line
    other = await run(ctx, "exec sleep 600")
    assert other.metadata["timedOut"] is True
    built = await run(ctx, "sleep 0.4; echo make")
    assert (built.output, built.metadata["exit"]) == ("make\n", 0)
    # What the model asks for counts.
    asked = await run(ctx, "sleep 600; echo make", timeout=1)
    assert asked.metadata["timedOut"] is True


async def test_what_was_left_running_is_told(tmp_path: Path) -> None:
    result = await run(make_context(tmp_path), "sleep 900 & echo x")
    assert result.output.startswith("x\n\n<shell_metadata>\n1 process that")
    assert result.metadata["exit"] == 0


async def test_a_shell_ended_by_a_signal_says_so(tmp_path: Path) -> None:
    result = await run(make_context(tmp_path), "kill -9 $$")
    assert (result.metadata["exit"], result.metadata["signal"]) == (None, "SIGKILL")


async def test_the_model_reads_plain_text_in_the_order_written_and_the_person_sees_colours(
    tmp_path: Path,
) -> None:
    command = r"printf '\e[32mone\e[0m\n'; echo two >&2; echo three; printf ' 10%%\r100%%\n'"
    result = await run(make_context(tmp_path), command)
    assert result.output.startswith(
        "one\ntwo\nthree\n100%\n\n[of what was written over, the last state is shown; the whole"
    )
    assert Path(result.metadata["outputPath"]).read_text().endswith("\n 10%\n100%\n")
    assert result.metadata["output"].startswith("\x1b[32mone\x1b[0m\ntwo\n")


async def test_an_exit_code_that_stands_for_a_signal_names_it(tmp_path: Path) -> None:
    result = await run(make_context(tmp_path), "sh -c 'kill -11 $$'")
    assert "\nexit code 139 (SIGSEGV)\n" in result.output


async def test_cancelling_reports_what_there_was(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    task = asyncio.create_task(run(ctx, "echo $$; sleep 900"))
    await wait_until(lambda: ctx.reports)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    shown = ctx.reports[-1]["metadata"]["output"]
    assert "aborted" in shown
    assert int(shown.split()[0]) not in {row.pid for row in list_processes()}


@pytest.mark.slow
async def test_long_output_is_cut_and_the_file_named(tmp_path: Path) -> None:
    result = await run(make_context(tmp_path), "seq 100000")
    assert result.metadata["truncated"] is True
    assert Path(result.metadata["outputPath"]).name in result.output
    assert Path(result.metadata["outputPath"]).read_text().endswith("\n100000\n")


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        (BashParams(command=" \n"), "empty"),
        (BashParams(command="echo \0"), "NUL"),
        (BashParams(command="ls", workdir="missing"), "not a folder"),
    ],
)
async def test_bad_input_is_refused_with_the_reason(
    tmp_path: Path, params: BashParams, reason: str
) -> None:
    with pytest.raises(ToolFailure, match=reason):
        await bash.run(params, make_context(tmp_path))


async def test_the_folder_in_a_refusal_may_have_braces_in_its_name(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    await run(ctx, "mkdir '{name}' && cd '{name}'")
    with pytest.raises(
        ToolFailure, match=r"is not a folder\. Leave it out to run in .*/\{name\}\."
    ):
        await run(ctx, "ls", workdir="missing")


async def test_a_server_is_started_watched_used_and_ended(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "page").write_text("served\n")
    server = (
        "import http.server as h; s = h.ThreadingHTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler);"
        "print(s.server_port, flush=True); s.serve_forever()"
    )
    started = await run(ctx, f'exec python3 -c "{server}"', run_in_background=True)
    name = started.metadata["id"]
    assert name in started.output
    news = await bash_output.run(BashOutputParams(id=name, wait=60_000), ctx)
    port = int(news.output.split()[0])
    fetch = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/page').read())"
    assert "served" in (await run(ctx, f'python3 -c "{fetch}"')).output
    news = await bash_output.run(BashOutputParams(id=name, wait=60_000), ctx)
    assert "GET /page" in news.output
    assert news.metadata["status"] == "running"
    quiet = await bash_output.run(BashOutputParams(id=name), ctx)
    assert quiet.output.startswith("(no new output)")
    assert "ended" in (await bash_kill.run(BashKillParams(id=name), ctx)).output
    last = await bash_output.run(BashOutputParams(id=name), ctx)
    assert last.metadata["status"] == "killed"
    assert "ended before" in (await bash_kill.run(BashKillParams(id=name), ctx)).output


async def test_a_session_sees_its_own_jobs_and_those_of_its_subagents(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    started = await run(ctx, "exec sleep 60", run_in_background=True)
    name = started.metadata["id"]
    assert name == "bash_1"
    other, child = opened(ctx, None), opened(ctx, ctx.session_id)
    grandchild = opened(ctx, child.session_id)
    for stranger in (other, child, grandchild):
        for given in (name, "1"):
            with pytest.raises(ToolFailure, match="Known: none"):
                await bash_output.run(BashOutputParams(id=given), stranger)
            with pytest.raises(ToolFailure, match="Known: none"):
                await bash_kill.run(BashKillParams(id=given), stranger)
    below = (await run(grandchild, "exec sleep 60", run_in_background=True)).metadata["id"]
    for above in (ctx, child, grandchild):
        assert (await bash_output.run(BashOutputParams(id=below), above)).metadata[
            "status"
        ] == "running"
    with pytest.raises(ToolFailure, match="Known: none"):
        await bash_kill.run(BashKillParams(id=below), other)
    assert "ended" in (await bash_kill.run(BashKillParams(id=below), ctx)).output
    assert (await bash_output.run(BashOutputParams(id=name), ctx)).metadata["status"] == "running"
    await ctx.workspace.shells.close()


def opened(ctx: TestContext, parent: str | None) -> TestContext:
    """Return a context of another session of the same project."""
    session = replace(ctx.store.get_session(ctx.session_id), id=new_id("ses"), parent_id=parent)
    ctx.store.append(make_session_created(session))
    return TestContext(session.id, new_id("msg"), "call_1", ctx.workspace, ctx.store)


async def test_an_unknown_job_is_refused_with_those_there_are(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    await run(ctx, "true", run_in_background=True)
    with pytest.raises(ToolFailure, match="bash_1"):
        await bash_output.run(BashOutputParams(id="bash_9"), ctx)
    await ctx.workspace.shells.close()


@pytest.mark.parametrize(
    "command", ["cat .env", "cat < .env", "cp a/.env.local x", "cd a && cat .env"]
)
async def test_reading_a_file_of_secrets_is_asked_about(command: str, tmp_path: Path) -> None:
    ctx = make_context(tmp_path, deny=("read",))
    with pytest.raises(Denied):
        await bash.run(BashParams(command=command), ctx)
    assert ".env" in ctx.asked[-1].patterns[0]


async def test_the_example_of_a_file_of_secrets_is_none(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    ctx.rules = ()
    (ctx.workspace.root / ".env.example").write_text("KEY=\n")
    result = await bash.run(BashParams(command="cat .env.example"), ctx)
    assert result.output == "KEY=\n"


@pytest.mark.slow
async def test_the_short_name_of_a_saved_output_works_in_every_tool(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    told = (await run(ctx, "seq 1 20000")).output
    found = re.search(r"the whole is in (tool_\w+) \.\.\.", told)
    assert found is not None
    name, saved = found[1], ctx.workspace.scratch / found[1]
    assert saved.is_file()
    assert (await read.run(ReadParams(name, offset=9_999, limit=1), ctx)).output.startswith(
        "9999: 9999\n"
    )
    assert (
        await grep.run(GrepParams(pattern="^1234$", path=name), ctx)
    ).output == f"1 match in 1 file\n{name}\n1234: 1234"
    told = await run(
        ctx,
        f"tail -n 1 {name}; wc -l < '{name}'; python3 -c 'print(len(open(\"{name}\").read()))'; echo x{name}",
    )
    assert told.output == f"20000\n20000\n108894\nx{name}\n"
    (ctx.workspace.root / name).write_text("own\n")
    assert (await run(ctx, f"cat {name}")).output == "own\n", (
        "a file of that name in the folder is meant"
    )
    assert "1: own" in (await read.run(ReadParams(name), ctx)).output


async def test_the_first_failing_test_run_names_what_tests_need_and_is_not_installed(
    tmp_path: Path,
) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "package.json").write_text('{"devDependencies": {"jest": "29"}}')
    note = "there is no node_modules. To install it: npm install"
    assert note not in (await run(ctx, "sh -c 'exit 1'")).output
    assert note in (await run(ctx, "sh -c 'exit 1 # npm test'")).output
    assert note not in (await run(ctx, "sh -c 'exit 1 # npm test'")).output, "it is said once"


async def test_a_folder_of_the_path_that_can_not_be_looked_at_is_passed_over(
    tmp_path: Path,
) -> None:
    ctx = make_context(tmp_path)
    ctx.workspace.environment["PATH"] = f"/usr/bin:/bin:/{'a' * 300}"
    assert "nosuchprogram is not installed." in (await run(ctx, "nosuchprogram")).output


async def test_a_missing_module_is_answered_with_the_group_that_has_it(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "pyproject.toml").write_text(
        '[dependency-groups]\ntest = ["absent-tool>=1"]\n'
    )
    result = await run(ctx, "python3 -c 'import absent_tool'")
    assert result.output.endswith(
        "exit code 1\n`absent_tool` is in the group `test` of pyproject.toml; it is not installed."
        " To install it: pip install --group test\n</shell_metadata>"
    )
