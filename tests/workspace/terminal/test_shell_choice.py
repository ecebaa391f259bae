"""What a terminal runs."""

import os
from pathlib import Path

import pytest

from codeloop.schema.api.pty import CreatePty
from codeloop.workspace.terminal.shell_choice import choose_program, find_user_shell, list_shells

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "SHELL": "/bin/sh", "LANG": "C.UTF-8"}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (CreatePty(command="no-such-program"), "is not a program"),
        (CreatePty(command="./nothing"), "is not a program"),
        (CreatePty(command="/etc"), "is not a program"),
        (CreatePty(command="/etc/passwd"), "is not a program"),
        (CreatePty(cwd="nowhere"), "no directory"),
        (CreatePty(cwd="/etc/passwd"), "no directory"),
        (CreatePty(cwd="a\0b"), "NUL"),
        (CreatePty(args=["a\0b"]), "NUL"),
        (CreatePty(env={"A": "a\0b"}), "NUL"),
        (CreatePty(env={"A=B": "c"}), "holds `=`"),
        (CreatePty(env={"": "c"}), "empty"),
    ],
)
def test_what_can_not_be_run_is_refused(tmp_path: Path, asked: CreatePty, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose_program(asked, tmp_path, ENVIRONMENT)


def test_a_shell_is_a_login_shell_and_another_program_gets_its_arguments_as_they_are(
    tmp_path: Path,
) -> None:
    def run(command: str | None, *args: str) -> tuple[str, ...]:
        return choose_program(
            CreatePty(command=command, args=list(args)), tmp_path, ENVIRONMENT
        ).args

    assert run(None) == ("-l",)
    assert run("/bin/sh") == run("sh") == ("-l",)
    assert run("sh", "-l") == ("-l",)
    assert run("cat", "x") == ("x",)


def test_the_size_of_our_own_terminal_is_not_handed_on(tmp_path: Path) -> None:
    inherited = {**ENVIRONMENT, "COLUMNS": "40", "LINES": "10", "TERM": "dumb"}
    environment = choose_program(CreatePty(env={"LINES": "3"}), tmp_path, inherited).environment
    assert (environment.get("COLUMNS"), environment["LINES"], environment["TERM"]) == (
        None,
        "3",
        "xterm-256color",
    )


def executable(path: Path) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_the_users_shell_is_the_one_of_the_environment_when_it_can_be_run(tmp_path: Path) -> None:
    mine = executable(tmp_path / "fish")
    assert find_user_shell({"SHELL": mine, "PATH": "/nowhere"}) == mine
    assert find_user_shell({"SHELL": "/nowhere/fish", "PATH": "/nowhere"}) == "/bin/sh"
    bash = executable(tmp_path / "bin" / "bash")
    assert find_user_shell({"PATH": str(tmp_path / "bin")}) == bash


def test_shells_are_those_the_system_lists_and_those_on_the_path(tmp_path: Path) -> None:
    nu = executable(tmp_path / "nu")
    found = list_shells({"PATH": str(tmp_path)})
    assert [(shell.name, shell.acceptable) for shell in found if shell.path == nu] == [("nu", True)]
    listed = [line for line in Path("/etc/shells").read_text().splitlines() if line.startswith("/")]
    assert {shell.path for shell in found} - {nu} <= set(listed)
    assert all(os.access(shell.path, os.X_OK) for shell in found)
    assert len({shell.path for shell in found}) == len(found)
