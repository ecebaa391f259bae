"""`codeloop` without a command: a conversation in a terminal, one turn without one,
and words that mean neither.
"""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.cli.program import Desk, bash, codeloop, result, serving, steps
from tests.cli.terminal import Terminal
from tests.support.answers import Answer

DONE = Answer(text="Everything is done.")


def last_prompt(body: dict[str, list[dict[str, str]]]) -> str:
    return [message["content"] for message in body["messages"] if message["role"] == "user"][-1]


@pytest.mark.slow
def test_in_a_terminal_a_conversation_begins_here_and_can_be_resumed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(DONE)) as server:
        desk.use(server)
        terminal = Terminal(desk)
        terminal.wait_for(str(desk.work.resolve()))
        terminal.wait_for("> ")
        terminal.type("say hi")
        terminal.wait_for("Everything is done.")
        terminal.wait_for("> ")
        terminal.type("/compct")
        terminal.wait_for("Unknown command: /compct. Did you mean `/compact`?")
        terminal.type("see @gone.py")
        terminal.wait_for("@gone.py does not exist and was not attached.")
        terminal.wait_for("Everything is done.")
        terminal.type("/agent bulid")
        terminal.wait_for("Agent not found: bulid. Did you mean `build`?")
        terminal.type("/exit")
        assert terminal.end() == 0
        assert "Resume with: codeloop --session ses_" in terminal.shown
        again = Terminal(desk, "-c", "--prompt", "and now")
        again.wait_for("> say hi")
        again.wait_for("> and now")
        again.wait_for("Everything is done.")
        again.type("/exit")
        assert again.end() == 0


@pytest.mark.parametrize(
    "words",
    [
        ("fix the bug",),
        ("fix", "the", "bug"),
        ("--agent", "build", "fix the bug"),
        (".", "--prompt", "fix the bug"),
    ],
)
def test_words_are_the_first_prompt(tmp_path: Path, words: tuple[str, ...]) -> None:
    desk = Desk(tmp_path)
    with serving(steps(DONE)) as server:
        desk.use(server)
        terminal = Terminal(desk, *words)
        terminal.wait_for("> fix the bug")
        terminal.wait_for("Everything is done.")
        terminal.type("/exit")
        assert terminal.end() == 0
        assert last_prompt(server.requests[0].json) == "fix the bug"


@pytest.mark.slow
def test_what_is_shown_line_by_line_is_shown_once_and_below_what_asked_for_it(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    refused = Answer(status=400, body='{"error": {"message": "no such thing"}}')
    with serving(lambda received: refused if b"xyzzy" in received.body else DONE) as server:
        desk.use(server, permission={"bash": "ask"})
        terminal = Terminal(desk, "--plain", term="xterm")
        terminal.wait_for("> ")
        terminal.type("/goal be done --check true")
        terminal.wait_for("1 step")
        terminal.wait_for("> ")
        terminal.type("/undo")
        terminal.wait_for("no file had to change")
        # Typed before the prompt is there, the terminal would echo it in front of the prompt.
        terminal.wait_for("> ")
        terminal.type("xyzzy")
        terminal.wait_for("1 step")
        terminal.type("/exit")
        assert terminal.end() == 0
    assert "> /undo\nUndone: “be done”\n  no file had to change\n> xyzzy\n" in _unpainted(
        terminal.shown
    )
    assert terminal.shown.count("no such thing") == 1


@pytest.mark.slow
def test_a_question_that_ends_with_its_turn_is_not_asked_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("ls"), DONE)) as server:
        desk.use(server, permission={"bash": "ask"})
        terminal = Terminal(desk, "--plain", "do the work", term="xterm")
        terminal.wait_for("or what to do instead: ")
        os.kill(terminal.child.pid, signal.SIGINT)
        terminal.wait_for("withdrawn.")
        shown = terminal.wait_for("1 step").partition("withdrawn.")[2]
        assert "Aborted" in shown
        assert "Run a command" not in shown
        terminal.type("/exit")
        assert terminal.end() == 0


def _unpainted(shown: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", shown)


@pytest.mark.slow
def test_a_turn_that_is_left_is_stopped_and_said_to_be(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("sleep 60"), DONE)) as server:
        desk.use(server)
        terminal = Terminal(desk, "--plain", "fix the bug", term="xterm")
        terminal.wait_for("… bash")
        os.kill(terminal.child.pid, 15)
        assert terminal.end() == 0
        assert "The turn was stopped. Resume with: codeloop --session ses_" in terminal.shown
        assert "Interrupted" in desk.run("session", "show").stdout


@pytest.mark.slow
def test_without_a_terminal_the_words_or_stdin_are_one_turn(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(DONE)) as server:
        desk.use(server)
        for arguments, stdin in (
            (("fix the bug",), ""),
            ((), "fix the bug\n"),
            (("--", "update"), ""),
        ):
            done = desk.run(*arguments, stdin=stdin)
            assert (done.returncode, done.stdout) == (0, "Everything is done.\n")
        assert last_prompt(server.requests[-1].json) in {"update", "fix the bug"}
        (tmp_path / "other").mkdir()
        assert desk.run("../other", "where is this?").returncode == 0
        assert str((tmp_path / "other").resolve()) in desk.run("session", "list", "--all").stdout


def test_without_anything_to_do_it_says_what_to_do(tmp_path: Path) -> None:
    done = codeloop(tmp_path)
    assert done.returncode == 2
    assert "Give a task" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("sesion", "list"), "Did you mean `codeloop session`?"),
        (("modles",), "Did you mean `codeloop models`?"),
        (("deploy",), "Unknown command: deploy. `codeloop --help`"),
        (("-c", "run"), "`run` is a command"),
        (("./nowhere",), "./nowhere does not exist. Name a directory"),
        (("src/nowhere",), "src/nowhere does not exist. Name a directory"),
        (("made.py",), "made.py is a file. Name a directory"),
        (("nowhere", "--prompt", "hi"), "nowhere is not a directory: with --prompt"),
        (("fix", "it", "--prompt", "hi"), "fix it is not a directory: with --prompt"),
        (("session", "lsit"), "Unknown command: lsit. Did you mean `codeloop session list`?"),
        (("login",), "Unknown command: login. Did you mean `codeloop auth login`?"),
        (("login", "anthropic"), "Did you mean `codeloop auth login`?"),
        (("ls",), "Did you mean `codeloop session list`?"),
        (("config",), "Did you mean `codeloop debug config`?"),
        (("mcp", "login"), "Did you mean `codeloop mcp auth`?"),
        (("session", "rm"), "Did you mean `codeloop session delete`?"),
        (("mcp", "search"), "Did you mean `codeloop session search`?"),
        (("run", "--cwd", "x", "hi"), "Unknown option: --cwd. Did you mean `--dir`?"),
        (("--max-cost", "1", "hi"), "Did you mean `codeloop run --max-cost`"),
        (
            ("run", "--sesion", "x", "hi"),
            "Unknown option: --sesion. Did you mean `--session`? See: codeloop run --h",
        ),
        (("--fooo",), "Unknown option: --fooo. See: codeloop --help"),
        (("run", "--max-steps", "0", "hi"), "See: codeloop run --help"),
        (("attach",), "See: codeloop attach --help"),
    ],
)
def test_what_is_mistyped_is_refused_in_one_line(
    tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    desk = Desk(tmp_path)
    (desk.work / "made.py").touch()
    done = desk.run(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("codeloop: ")
    assert told in line


def test_a_usage_error_as_json_has_no_prefix(tmp_path: Path) -> None:
    done = codeloop(tmp_path, "run", "--format", "json", "--fooo")
    assert result(done)["message"] == "Unknown option: --fooo. See: codeloop run --help"


def helps(desk: Desk, *command: str) -> list[tuple[str, ...]]:
    """Return the command and all those below it."""
    shown = desk.run(*command, "--help", COLUMNS="80").stdout
    if "\nCommands:\n" not in shown:
        return [command]
    rows = shown.partition("\nCommands:\n")[2].splitlines()
    names = [row.split()[0] for row in rows if row.startswith("  ") and not row.startswith("   ")]
    return [command, *(found for name in names for found in helps(desk, *command, name))]


def test_the_demo_in_the_terminal_ui_needs_a_terminal(tmp_path: Path) -> None:
    ended = codeloop(tmp_path, "demo", "--tui")
    assert ended.returncode == 2
    assert "needs a terminal" in ended.stderr


@pytest.mark.slow
def test_no_help_is_cut_or_too_wide(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    commands = helps(desk)
    assert len(commands) > 20
    for command in commands:
        for columns in (60, 80):
            shown = desk.run(*command, "--help", COLUMNS=str(columns)).stdout
            text = [
                line for line in shown.splitlines() if "Usage:" not in line and "[ARGS]" not in line
            ]
            assert not [line for line in text if line.endswith("...")], command
            assert max(map(len, text)) <= columns, command


def test_a_subcommand_of_a_table_shows_its_whole_sentence(tmp_path: Path) -> None:
    shown = " ".join(codeloop(tmp_path, "agent", "--help", COLUMNS="60").stdout.split())
    assert "..." not in shown.partition("Commands:")[2]
