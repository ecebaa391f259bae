"""Commands of `hooks` under the real program: what they are told, what they decide,
and which of them run at all.
"""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, bash, call, result, serving, steps
from tests.cli.test_mcp_run import is_running
from tests.extend.mcp.world import PLAIN
from tests.support.answers import Answer
from tests.support.sandbox_support import has_sandbox

DONE = Answer(text="Finished.")


def row(command: str, matcher: str = "", **more: Any) -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": command, **more}]}


def noting(path: Path, say: str = "") -> str:
    """Return a command that keeps what it is told, a line each."""
    return f"cat >> {shlex.quote(str(path))}; echo >> {shlex.quote(str(path))}; {say}"


def noted(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line]


OUTSIDE: dict[str, Any] = {"sandbox": {"extensions": False}}
"""For hooks that leave traces for a test to see."""


def results(server: Any) -> list[str]:
    """Return what the model was told of its calls, in order."""
    return [str(m["content"]) for m in server.requests[-1].json["messages"] if m["role"] == "tool"]


def test_a_settings_file_of_claude_code_is_used_as_it_is(tmp_path: Path) -> None:
    """Every event of a session, with the names of tools and arguments that its scripts read."""
    desk = Desk(tmp_path)
    log, settings = tmp_path / "log", tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()
    events = ("PostToolUse", "SessionStart", "SessionEnd", "UserPromptSubmit", "Stop")
    hooks = {event: [row(noting(log))] for event in events}
    guard = "grep -q 'rm -rf' && { echo 'never remove' >&2; exit 2; }; exit 0"
    hooks["PreToolUse"] = [row(noting(log), "Write|Edit"), row(guard, "Bash")]
    settings.write_text(json.dumps({"model": "opus", "hooks": hooks}))
    script = steps(
        bash("rm -rf build", "c1"),
        call("write", call_id="c2", filePath="a.txt", content="one"),
        DONE,
    )
    with serving(script) as server:
        desk.use(
            server,
            hooks="~/.claude/settings.json",
            permission={"bash": "allow", "edit": "allow"},
            **OUTSIDE,
        )
        (desk.work / "build").mkdir()
        done = desk.run("run", "--format", "json", "do it")
        assert result(done)["exitCode"] == 0
        assert "never remove" in results(server)[0]
    assert (desk.work / "build").is_dir()
    told = {each["hook_event_name"]: each for each in noted(log)}
    assert set(told) == {"PreToolUse", *events}
    assert [each["hook_event_name"] for each in noted(log)][:2] == [
        "SessionStart",
        "UserPromptSubmit",
    ]
    assert told["PreToolUse"]["tool_name"] == "Write"
    assert told["PreToolUse"]["tool_input"] == {
        "file_path": str(desk.work / "a.txt"),
        "content": "one",
    }
    assert told["PostToolUse"]["tool_response"]["filePath"] == str(desk.work / "a.txt")
    assert told["SessionStart"]["source"] == "startup"
    assert told["UserPromptSubmit"]["prompt"] == "do it"
    assert told["Stop"]["stop_hook_active"] is False
    assert told["Stop"]["last_assistant_message"] == "Finished."
    assert {each["cwd"] for each in noted(log)} == {str(desk.work)}
    assert len({each["session_id"] for each in noted(log)}) == 1


@pytest.mark.slow
def test_hooks_speak_to_the_model_and_send_it_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    context = json.dumps({"hookSpecificOutput": {"additionalContext": "the branch is green"}})
    stop = "grep -q '\"stop_hook_active\":true' || { echo 'run the tests too' >&2; exit 2; }"
    hooks = {
        "SessionStart": [
            row("echo on $(basename $CLAUDE_PROJECT_DIR)", "startup"),
            row("echo resumed", "resume"),
        ],
        "UserPromptSubmit": [row(f"echo {shlex.quote(context)}")],
        "PostToolUse": [row("echo 'format it' >&2; exit 2", "Bash")],
        "Stop": [row(stop)],
    }
    with serving(steps(bash("echo hi"), DONE)) as server:
        desk.use(server, hooks=hooks, permission={"bash": "allow"})
        assert desk.run("run", "go").returncode == 0
        prompts = [
            m["content"] for m in server.requests[-1].json["messages"] if m["role"] == "user"
        ]
        assert "on work" in str(prompts[0])
        assert "resumed" not in str(prompts[0])
        assert "the branch is green" in str(prompts[0])
        assert "run the tests too" in str(prompts[1])
        assert "format it" in results(server)[0]
        desk.run("run", "--continue", "more")
        assert "resumed" in str(server.requests[-1].json["messages"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "output", "says", "exit_code"),
    [
        ("PreToolUse", {"hookSpecificOutput": {"permissionDecision": "allow"}}, "hi", 0),
        ("PreToolUse", {"hookSpecificOutput": {"permissionDecision": "ask"}}, "Nobody", 5),
        (
            "PreToolUse",
            {
                "hookSpecificOutput": {
                    "permissionDecision": "allow",
                    "updatedInput": {"command": "echo instead"},
                }
            },
            "instead",
            0,
        ),
        (
            "PermissionRequest",
            {"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "no way"}}},
            "no way",
            0,
        ),
    ],
)
def test_a_decision_is_json_on_stdout(
    tmp_path: Path, event: str, output: dict[str, Any], says: str, exit_code: int
) -> None:
    desk = Desk(tmp_path)
    if "allow" in str(output) and not has_sandbox():
        pytest.skip("a hook that may allow needs a sandbox that hides the project")
    with serving(steps(bash("echo hi"), DONE)) as server:
        desk.use(
            server,
            hooks={
                event: [
                    row(
                        f"echo {shlex.quote(json.dumps(output))}",
                        "Bash",
                        mayAllow="allow" in str(output),
                    )
                ]
            },
            profile="ask",
            permission={"bash": "ask"},
        )
        done = desk.run("run", "--format", "json", "go")
        assert result(done)["exitCode"] == exit_code, done.stderr
        assert says in (results(server) or [done.stdout])[0]


@pytest.mark.slow
def test_a_hook_that_fails_is_named_and_passed_over_unless_it_is_a_policy(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for policy in (False, True):
        with serving(steps(bash("echo hi"), DONE)) as server:
            hooks = {"PreToolUse": [row("echo broken >&2; exit 3", "Bash", policy=policy)]}
            desk.use(server, hooks=hooks, permission={"bash": "allow"})
            done = desk.run("run", "go")
            if policy:
                assert (
                    "decides about tool.execute.before, and could not: it ended with exit code 3: broken"
                    in results(server)[0]
                )
            else:
                assert results(server)[0].startswith("hi")
                assert "PreToolUse hook `echo broken >&2; exit 3` failed" in done.stderr


@pytest.mark.slow
def test_a_hook_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("echo hi"), DONE)) as server:
        command = f"sh -c 'sleep 600; true' {tmp_path}/mark & wait"
        desk.use(
            server,
            hooks={"PreToolUse": [row(command, timeout=1)]},
            permission={"bash": "allow"},
            **OUTSIDE,
        )
        done = desk.run("run", "go")
        assert "did not answer in 1 s" in done.stderr
        assert results(server)[0].startswith("hi")
    assert not is_running(tmp_path / "mark")


@pytest.mark.slow
def test_a_projects_hooks_run_once_it_is_trusted_and_never_changed(tmp_path: Path) -> None:
    """Neither its configuration, nor the settings file that it names,
    nor a script of a command may change unseen.
    """
    desk = Desk(tmp_path)
    script = desk.work / "scripts" / "check.sh"
    script.parent.mkdir()
    script.write_text("echo ran >> log\n")
    settings = desk.work / ".claude" / "settings.json"
    settings.parent.mkdir()
    hooks = {"UserPromptSubmit": [row('sh "$CLAUDE_PROJECT_DIR"/scripts/check.sh')]}
    settings.write_text(json.dumps({"hooks": hooks}))
    (desk.work / "codeloop.json").write_text('{"hooks": ".claude/settings.json"}')
    log = desk.work / "log"
    with serving([DONE]) as server:
        desk.use(server)
        done = desk.run("run", "go")
        assert not log.exists()
        (warning,) = [line for line in done.stderr.splitlines() if "codeloop trust" in line]
        assert "hooks" in warning
        assert desk.run("trust").returncode == 0
        desk.run("run", "go")
        assert log.read_text() == "ran\n"
        for file, text in ((script, "echo evil >> log\n"), (settings, json.dumps({"hooks": {}}))):
            before = file.read_text()
            file.write_text(text)
            done = desk.run("run", "go")
            assert f"{file.relative_to(desk.work)} changed" in done.stderr
            assert log.read_text() == "ran\n"
            file.write_text(before)
        desk.run("run", "go")
        assert log.read_text() == "ran\nran\n"


def test_mistakes_in_hooks_name_file_line_and_what_is_expected(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.configure(hooks={"PreToolUse": [{"hooks": [{"type": "command"}]}]})
    done = desk.run("run", "go")
    assert done.returncode != 0
    assert "hooks.PreToolUse[0].hooks[0].command: expected a command, got null" in done.stderr
    desk.configure(hooks="missing.json")
    assert "missing.json of hooks does not exist" in desk.run("run", "go").stderr
    with serving([DONE]) as server:
        hooks = {
            "Pretooluse": [row("true")],
            "Stop": [{"hooks": [{"type": "mcp_tool", "tool": "x"}]}],
        }
        desk.use(server, hooks=hooks)
        done = desk.run("run", "go")
        assert "hooks.Pretooluse means nothing to codeloop" in done.stderr
        assert "hooks of the type 'mcp_tool' are not run" in done.stderr


@pytest.mark.slow
def test_tools_of_mcp_servers_are_known_by_the_names_of_scripts(tmp_path: Path) -> None:
    """Whether a request names the tool, or it is called through the one that finds tools."""
    desk = Desk(tmp_path)
    log, traces = tmp_path / "log", tmp_path / "traces"
    traces.mkdir()
    for script in (call("mcp", tool="p_echo", arguments={"text": "hi"}), call("p_echo", text="hi")):
        with serving(steps(script, DONE)) as server:
            hooks = {
                "PreToolUse": [row(noting(log), "mcp__p__.*")],
                "PostToolUse": [row(noting(log), "p_echo")],
            }
            mcp = {
                "p": {
                    "type": "local",
                    "command": [sys.executable, str(PLAIN), str(traces)],
                    "sandbox": False,
                }
            }
            desk.use(server, hooks=hooks, mcp=mcp, **OUTSIDE)
            desk.run("run", "--auto", "go")
            assert "echo: hi" in results(server)[0]
    assert [each["hook_event_name"] for each in noted(log)] == ["PreToolUse", "PostToolUse"] * 2
    assert {each["tool_name"] for each in noted(log)} == {"mcp__p__echo"}
    assert [each["tool_input"] for each in noted(log)] == [{"text": "hi"}] * 4


@pytest.mark.slow
@pytest.mark.skipif(not has_sandbox(), reason="no sandbox can be had here")
def test_hooks_of_a_project_are_sandboxed_as_commands_are_and_the_users_in_their_own(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    theirs = f"echo x > inside; echo x > {outside}/project"
    (desk.work / "codeloop.json").write_text(
        json.dumps({"hooks": {"UserPromptSubmit": [row(theirs)]}})
    )
    mine = f"echo x > {desk.work}/mine; echo x > {outside}/mine; env > $HOME/env; cat $HOME/env"
    active = desk.work / ".venv/bin"
    active.mkdir(parents=True)
    (active / "python3").write_text(f"#!/bin/sh\necho x > {outside}/planted\n")
    (active / "python3").chmod(0o755)
    own = row(f"echo x > {outside}/own; python3 -c pass", sandbox=False)
    rows = [row(mine, allowedEnvVars=["MY_TOKEN"]), own]
    with serving([DONE]) as server:
        desk.use(server, hooks={"UserPromptSubmit": rows})
        tokens = {"MY_TOKEN": "my-token", "OTHER_TOKEN": "another-token"}
        desk.run("run", "--trust", "go", **tokens, PATH=f"{active}:{os.environ['PATH']}")
        told = str(server.requests[0].json["messages"])
        assert (desk.work / "inside").exists()
        # As formatters do: a user's hook writes files of a trusted project.
        assert (desk.work / "mine").exists()
        assert [each.name for each in outside.iterdir()] == ["own"]
        assert ("my-token" in told, "another-token" in told) == (True, False)


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", [True, False])
def test_what_lies_in_a_project_stands_in_for_nothing_that_a_hook_of_the_users_runs(
    tmp_path: Path, *, sandbox: bool
) -> None:
    desk = Desk(tmp_path)
    for name in ("json", "goodhook", "sitecustomize"):
        (desk.work / f"{name}.py").write_text("print('planted')")
    (desk.work / "goodhook").write_text("#!/bin/sh\necho planted")
    (desk.work / "goodhook").chmod(0o755)
    rows = [
        row("python3 -m json.tool --help | head -1", sandbox=sandbox),
        row("goodhook; pwd; echo asked", sandbox=sandbox),
    ]
    with serving([DONE]) as server:
        desk.use(server, hooks={"UserPromptSubmit": rows})
        path = f".:./node_modules/.bin:{os.environ['PATH']}"
        done = desk.run("run", "go", PATH=path, BASH_ENV="./goodhook", PYTHONSAFEPATH="1")
        assert done.returncode == 0, done.stderr
        told = str(server.requests[0].json["messages"])
        assert ("asked" in told, "usage" in told, "planted" in told) == (True, True, False)
        assert f"{desk.home}/data/programs/hooks" in told
