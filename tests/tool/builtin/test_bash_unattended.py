"""Commands that ask a person end by themselves,
and the model reads what waited and what to use instead.
"""

import asyncio
import subprocess
from pathlib import Path

import pytest

from codeloop.tool.builtin.shell.bash import BashParams, bash
from codeloop.tool.builtin.shell.command_result import describe_unanswered, shows_what_comes
from tests.tool.context import make_context

# As a person has them, who works at a terminal.
PERSONAL = {
    "EDITOR": "vi",
    "VISUAL": "vi",
    "GIT_EDITOR": "vi",
    "GIT_SEQUENCE_EDITOR": "vi",
    "TERM": "xterm-256color",
    "GPG_TTY": "/dev/tty",
}
WHO = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@e",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@e",
}
# Waits as vi does: without a terminal it takes its output for its keyboard.
EDITOR = "import os, select\nos.dup2(2, 0)\nselect.select([0], [], [])\n"


async def run(folder: Path, command: str) -> str:
    context = make_context(folder)
    context.workspace.environment = {**context.workspace.environment, **PERSONAL, **WHO}
    async with asyncio.timeout(60):
        return (await bash.run(BashParams(command=command), context)).output


def make_repository(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@e", *arguments],
            cwd=folder,
            check=True,
            capture_output=True,
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "python3 ../editor.py",
        "sh -c 'python3 ../editor.py 2>&1 | cat'",
        "env python3 ../editor.py 2>&1",
    ],
)
async def test_what_waits_for_keys_that_nobody_can_press_is_ended(
    tmp_path: Path, line: str
) -> None:
    (tmp_path / "editor.py").write_text(EDITOR)
    output = await run(tmp_path, f"{line}; echo after it")
    assert "after it" in output
    assert "waited for keys, which nobody can press here, and was ended" in output


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "git commit --allow-empty",
        "git commit --amend --allow-empty",
        "git rebase -i --root",
        "git tag -a v1",
        "git config -e",
    ],
)
async def test_git_opens_no_editor(tmp_path: Path, line: str) -> None:
    make_repository(tmp_path)
    output = await run(tmp_path, line)
    assert "problem with the editor 'false'" in output
    assert "It wanted an editor, which nobody could type into here." in output


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "git -c core.editor=true commit --amend --allow-empty",
        "GIT_EDITOR=true git commit --amend --allow-empty",
        "export EDITOR=true GIT_EDITOR=true; git commit --amend --allow-empty",
        "GIT_SEQUENCE_EDITOR=true git rebase -i --root",
        "git -c sequence.editor=true rebase -i --root",
    ],
)
async def test_an_editor_that_a_command_names_is_used(tmp_path: Path, line: str) -> None:
    make_repository(tmp_path)
    output = await run(tmp_path, f"{line} && echo well")
    assert "well" in output


async def test_programs_find_no_editor_and_no_pager_of_the_person(tmp_path: Path) -> None:
    output = await run(tmp_path, 'echo "$EDITOR $VISUAL $PAGER $GIT_PAGER [$GIT_EDITOR$GPG_TTY]"')
    assert output == "false false cat cat []\n"


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("rm -i a", "rm: remove regular file 'a'? "),
        ("git add -p", "(1/1) Stage this hunk [y,n,q,a,d,e,?]? \n"),
        ("npm init", "Press ^C at any time to quit.\npackage name: (work) \n"),
        ("npm login", "npm notice Log in on https://registry.npmjs.org/\nUsername: "),
        ("ssh-keygen", "Enter file in which to save the key (/home/you/.ssh/id_rsa): "),
        ("read -p 'Name: ' x; echo got $x", "got \n"),
        ("for i in 1; do read -r -p 'Go on? ' x; done", ""),
    ],
)
def test_a_question_that_got_no_answer_is_named(command: str, printed: str) -> None:
    assert "got no answer" in describe_unanswered(command, printed, is_failed=False)


@pytest.mark.parametrize(
    ("printed", "advice"),
    [
        ("EOFError: EOF when reading a line\n", "pipe it in"),
        ("Do you want to continue? [Y/n] Abort.\n", "--yes"),
        (
            "Host key verification failed.\nfatal: Could not read from remote repository.\n",
            "accept-new",
        ),
        (
            "sudo: a terminal is required to read the password; either use the -S option\n",
            "ask the user",
        ),
        (
            "fatal: could not read Username for 'https://h': terminal prompts disabled\n",
            "The user has to sign in",
        ),
        ('crontab: "false" exited with status 1\n', "EDITOR=PROGRAM"),
        ("New password: Password change has been aborted.\npasswd: unchanged\n", "ask the user"),
        ("1) a\n2) b\n#? \n", "got no answer"),
        ("open terminal failed: not a terminal\n", "needs a terminal"),
        ("top: failed tty get\n", "needs a terminal"),
        ("gpg: cannot open '/dev/tty': No such device or address\n", "needs a terminal"),
        ("the input device is not a TTY\n", "needs a terminal"),
    ],
)
def test_what_a_program_without_a_person_says_is_explained(printed: str, advice: str) -> None:
    assert advice in describe_unanswered("x", printed, is_failed=True)


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("cat a", "plain text\n"),
        ("cat a", "no line end"),
        ("cat a", "What now?\n"),
        ("psql", "\tIs the server running on that host and accepting TCP/IP connections?\n"),
        ("echo false editor > a", "fine\n"),
        ("while read -r line; do echo $line; done < a", ""),
        ("read -p x y < a", ""),
    ],
)
def test_what_is_no_question_gets_no_note(command: str, printed: str) -> None:
    assert describe_unanswered(command, printed, is_failed=False) == ""


@pytest.mark.parametrize(
    "command",
    [
        "watch -n1 date", "tail -f a.log", "tail -n 5 -F a.log", "tail --follow=name a.log",
        "cd /tmp && tail -f a.log | grep x", "less +F a.log", "top", "journalctl -u x -f",
        "docker logs -f web", "docker compose logs --follow", "kubectl get pods -w", "dmesg -w",
        "ping localhost", "yes", "sleep infinity", "vmstat 1", "nc -l 8080", "sudo tail -f a.log",
        "inotifywait -m .", "gh run watch 5 --watch", "iostat -x sda1 5",
        "tail -f a.log | grep x | tee b", "yes | cat", "make || tail -f a.log",
    ],
)  # fmt: skip
def test_a_command_that_shows_what_comes_never_ends(command: str) -> None:
    assert shows_what_comes(command)


@pytest.mark.parametrize(
    "command",
    [
        "tail -n 5 a.log", "tail -f a.log & make test", "grep -f patterns a.log", "top -b -n 1",
        "ping -c 1 localhost", "docker build -f Dockerfile .", "kubectl get pods", "echo tail -f",
        "npm run watch-once", "timeout 5 tail -f a.log", "vmstat", "make test", "topgrade",
        "git log -f", "yesterday.sh", "docker build -f Dockerfile . && make test",
        "yes | ./install.sh", "yes | apt install x", "yes | sudo tee a | sh", "vmstat 1 5",
        "iostat -x 1 3", "tail -F a.log | grep -m1 ready", "tail -f a.log | grep -q ready",
        "tail -f a.log | head -5", "tail -f a.log | sed /ready/q", "ping localhost | head -3",
    ],
)  # fmt: skip
def test_others_do(command: str) -> None:
    assert not shows_what_comes(command)


def test_an_interpreter_without_a_program_is_told() -> None:
    assert "reads" not in describe_unanswered("python3 a.py", "", is_failed=False)
    for command in ("python3", "node", "/bin/sh", "sqlite3", "python3 -i"):
        assert "stdin, which is empty" in describe_unanswered(command, "", is_failed=False)
    assert describe_unanswered("cat a.txt", "", is_failed=False) == ""
