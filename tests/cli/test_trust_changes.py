"""Trust is bound to what was trusted: what changes later is asked about again,
with the difference.
"""

import asyncio
import json
import os
from pathlib import Path

import pytest

from codeloop.config.paths import find_paths
from codeloop.config.trust.store import trust_directory
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.live_events import ToastShown
from tests.cli.program import Desk, bash, result, serving, steps
from tests.cli.terminal import Terminal
from tests.support.answers import Answer
from tests.support.model_server import ModelServer
from tests.support.scripted_project import make_answer, make_call, open_scripted_project, wait_until

DONE = Answer(text="Finished.")
ALLOWED = '{"permission": {"bash": "allow"}}\n'
CALL = bash("echo one >> log")


def trusted(folder: Path, server: ModelServer, text: str = ALLOWED) -> Desk:
    """A trusted project that allows what the person has asked for."""
    desk = Desk(folder)
    (desk.work / "codeloop.json").write_text(text)
    desk.use(server, permission={"bash": "ask"})
    assert desk.run("trust").returncode == 0
    return desk


def test_a_model_does_not_lift_its_own_rules(tmp_path: Path) -> None:
    """Hidden in a file that nobody asks about, the new rules would count in the next run."""
    more = {"permission": {"edit": {"kept/*": "allow"}, "bash": "allow", "webfetch": "allow"}}
    write = f"mkdir -p .codeloop && printf %s '{json.dumps(more)}' > .codeloop/codeloop.json"
    with serving(steps(bash(write), DONE)) as server:
        desk = trusted(tmp_path, server)
        desk.run("run", "--auto", "first")
        assert (desk.work / ".codeloop/codeloop.json").exists()
    with serving(steps(CALL, DONE)) as server:
        desk.use(server, permission={"bash": "ask"})
        done = desk.run("run", "--format", "json", "second")
        assert result(done)["exitCode"] == 5
        (warning,) = [line for line in done.stderr.splitlines() if "codeloop trust" in line]
        assert ".codeloop/codeloop.json added" in warning
    assert not (desk.work / "log").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("codeloop.json", '{"permission": {"bash": "allow", "edit": "allow"}}'),
        (".opencode/command/go.md", "Run !`true`."),
        (".codeloop/agents/team/x.md", "---\nmode: all\n---\nDo."),
        (".codeloop/skill/s/SKILL.md", "---\nname: s\ndescription: d\n---\nText."),
        (".claude/skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\nText."),
        (".codeloop/plugin/p.py", "print()"),
        (".opencode/tools/t.ts", "export default 1"),
        ("prompt.txt", "Another text."),
        ("style.md", "Another style."),
        ("serve/mcp.py", "print('another server')"),
        ("serve/module.py", "print('another server')"),
    ],
)
def test_whatever_counts_is_compared(tmp_path: Path, name: str, text: str) -> None:
    own = {
        "permission": {"bash": "allow"},
        "agent": {"build": {"prompt": "{file:prompt.txt}"}},
        "instructions": ["style.md"],
        "mcp": {"m": {"type": "local", "command": ["python3", "serve/mcp.py"], "enabled": False}},
        "lsp": {"l": {"command": ["python3", "-m", "serve.module"], "extensions": [".x"]}},
    }
    with serving(steps(CALL, DONE)) as server:
        (tmp_path / "work").mkdir()
        (tmp_path / "work/prompt.txt").write_text("You build.")
        (tmp_path / "work/style.md").write_text("Short lines.")
        desk = trusted(tmp_path, server, json.dumps(own))
        assert desk.run("run", "first").returncode == 0
        file = desk.work / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        done = desk.run("run", "second")
        assert done.returncode == 5, done.stderr
        assert name in done.stderr
        assert name in desk.run("trust", "--show").stdout
        assert desk.run("trust").returncode == 0
        assert desk.run("run", "third").returncode == 0
    assert (desk.work / "log").read_text() == "one\n" * 2


def test_a_removed_file_counts_and_what_does_not_matter_does_not(tmp_path: Path) -> None:
    with serving(steps(CALL, DONE)) as server:
        desk = trusted(tmp_path, server)
        for name in ("AGENTS.md", "main.py", ".codeloop/plans/p.md", "inner/.env"):
            (desk.work / name).parent.mkdir(parents=True, exist_ok=True)
            (desk.work / name).write_text("x")
        assert desk.run("run", "first").returncode == 0
        (desk.work / "codeloop.json").unlink()
        done = desk.run("run", "second")
        assert done.returncode == 5
        assert "codeloop.json removed" in done.stderr


def test_the_command_shows_the_difference(tmp_path: Path) -> None:
    with serving([DONE]) as server:
        desk = trusted(tmp_path, server)
        assert "Nothing has changed" in desk.run("trust", "--show").stdout
        (desk.work / "codeloop.json").write_text(
            '{"permission": {"bash": "allow"},\n "shell": "./evil\x1b[2J"}\n'
        )
        assert "has changed since" in desk.run("trust", "--list").stdout
        shown = desk.run("trust", "--show").stdout
        assert "changed: codeloop.json" in shown
        assert '+ "shell": "./evil' in shown
        assert '-{"permission"' in shown
        assert "\x1b" not in shown
        assert "has changed since" in desk.run("trust", "--list").stdout, "--show trusts nothing"
        again = desk.run("trust").stdout
        assert '+ "shell"' in again
        assert "Trusted: " in again
        assert "has changed since" not in desk.run("trust", "--list").stdout


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 5)])
def test_a_terminal_shows_the_difference_and_asks(tmp_path: Path, answer: str, code: int) -> None:
    with serving(steps(CALL, DONE)) as server:
        desk = trusted(tmp_path, server)
        (desk.work / "codeloop.json").write_text(
            '{"permission": {"bash": "allow"}, "username": "eve"}\n'
        )
        terminal = Terminal(desk, "run", "--title", "T", "hello")
        shown = terminal.wait_for("Trust it? [y/N] ")
        assert '"username": "eve"' in shown
        terminal.type(answer)
        if answer == "n":
            terminal.wait_for("allow once")
            terminal.type("n")
        terminal.end()
        assert (desk.work / "log").exists() == (code == 0)
        assert ("has changed since" in desk.run("trust", "--list").stdout) == (code == 5)


@pytest.mark.parametrize("words", [("run", "--title", "T", "hello"), ("trust",)])
def test_what_was_shown_is_trusted_and_nothing_that_came_after_it(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    with serving(steps(CALL, DONE)) as server:
        desk = trusted(tmp_path, server)
        file = desk.work / "codeloop.json"
        file.write_text('{"permission": {"bash": "allow"}, "username": "eve"}\n')
        terminal = Terminal(desk, *words)
        terminal.wait_for("[y/N]")
        file.write_text('{"permission": {"bash": "allow"}, "shell": "./evil"}\n')
        terminal.type("y")
        assert "changed while you were asked" in " ".join(
            terminal.wait_for("codeloop trust").split()
        )
        terminal.end()
        assert not (desk.work / "log").exists()
        assert "has changed since" in desk.run("trust", "--list").stdout


def test_what_was_trusted_before_this_was_kept_is_taken_as_it_is_once(tmp_path: Path) -> None:
    with serving(steps(CALL, DONE)) as server:
        desk = trusted(tmp_path, server)
        list_ = desk.home / "state/trust.json"
        list_.write_text(
            json.dumps({"directories": {os.path.realpath(desk.work): {"time": 1_700_000_000_000}}})
        )
        first = desk.run("run", "first")
        assert first.returncode == 0
        assert "it is taken as it is now" in first.stderr
        second = desk.run("run", "second")
        assert second.returncode == 0
        assert "as it is now" not in second.stderr
        (desk.work / "codeloop.json").write_text(ALLOWED + " ")
        assert desk.run("run", "third").returncode == 5


def test_a_change_behind_equal_time_and_size_is_seen(tmp_path: Path) -> None:
    with serving(steps(CALL, DONE)) as server:
        desk = trusted(tmp_path, server, '{"permission": {"bash": "allow"}, "username": "bob"}')
        file = desk.work / "codeloop.json"
        before = file.stat()
        with file.open("r+") as opened:
            opened.write('{"permission": {"bash": "allow"}, "username": "eve"}')
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert file.stat().st_ino == before.st_ino
        assert desk.run("run", "go").returncode == 5


def test_a_changed_project_warns_in_other_commands_and_never_fails_them(tmp_path: Path) -> None:
    with serving([DONE]) as server:
        desk = trusted(tmp_path, server)
        (desk.work / "codeloop.json").write_text('{"username": "eve"}')
        for command in (["debug", "config"], ["agent", "list"], ["session", "list"], ["--version"]):
            assert desk.run(*command).returncode == 0
        assert "codeloop.json changed" in desk.run("debug", "config").stderr


def test_what_the_person_makes_with_codeloop_stays_trusted(tmp_path: Path) -> None:
    with serving(steps(CALL, DONE)) as server:
        desk = trusted(tmp_path, server)
        assert desk.run("agent", "create", "reviewer").returncode == 0
        assert desk.run("run", "go").returncode == 0
        assert "reviewer" in desk.run("agent", "list").stdout


async def test_followers_of_a_running_project_are_told(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/codeloop.json").write_text('{"permission": {"edit": "deny"}}')
    trust_directory(
        find_paths({"CODELOOP_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}),
        tmp_path / "work",
    )
    answers = [make_answer(make_call("list")), ScriptedAnswer(text="Done.")]
    async with open_scripted_project(
        tmp_path, answers, permission={"*": "allow", "edit": {"<protected>": "allow"}}
    ) as it:
        told: list[str] = []

        async def follow() -> None:
            async for stamped in it.project.store.follow():
                match stamped.event:
                    case ToastShown(properties=toast):
                        told.append(toast.message)
                    case _:
                        pass

        following = asyncio.create_task(follow())
        (it.work / "codeloop.json").write_text("{}")
        await it.prompt()
        # On some machines a sandbox holds less, which is told as well.
        await wait_until(lambda: any("codeloop.json changed" in each for each in told))
        following.cancel()
        assert "codeloop trust" in next(each for each in told if "codeloop.json changed" in each)
