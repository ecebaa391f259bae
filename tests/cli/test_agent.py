"""`codeloop agent` and `codeloop run --command`, as the real program."""

import json
from pathlib import Path

import pytest

from tests.cli.program import codeloop


def write(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def replay(folder: Path) -> str:
    """Write a recording of one answer and return its path."""
    write(folder, "answers.jsonl", '{"text": "Hi!"}\n')
    return str(folder / "answers.jsonl")


def test_the_list_shows_the_agents_and_where_they_come_from(tmp_path: Path) -> None:
    write(
        tmp_path,
        "home/config/agent/mine.md",
        "---\ndescription: Mine\nmode: subagent\nmodel: a/b\n---\nBe mine.",
    )
    write(tmp_path, "work/.codeloop/agent/theirs.md", "Be theirs.")
    done = codeloop(tmp_path, "agent", "list")
    assert done.returncode == 0
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names == ["name", "build", "explore", "general", "mine", "plan"]
    (mine,) = [line for line in done.stdout.splitlines() if line.startswith("mine")]
    assert mine.split() == [
        "mine",
        "subagent",
        "a/b",
        "Mine",
        str(tmp_path / "home/config/agent/mine.md"),
    ]
    assert "theirs.md" in done.stderr
    listed = json.loads(codeloop(tmp_path, "agent", "list", "--all", "--json").stdout)
    assert {"title", "summary", "compaction"} <= {agent["name"] for agent in listed}


def test_create_writes_a_page_that_is_read_and_never_overwrites(tmp_path: Path) -> None:
    done = codeloop(
        tmp_path,
        "agent",
        "create",
        "team/reviewer",
        "--description",
        "Reviews",
        "--mode",
        "subagent",
    )
    assert done.returncode == 0
    file = tmp_path / "work/.codeloop/agent/team/reviewer.md"
    assert str(file) in done.stdout
    assert "codeloop trust" in done.stdout
    before = file.read_text()
    again = codeloop(tmp_path, "agent", "create", "team/reviewer")
    assert again.returncode == 2
    assert "already exists" in again.stderr
    assert file.read_text() == before
    assert codeloop(tmp_path, "trust").returncode == 0
    assert "team/reviewer" in codeloop(tmp_path, "agent", "list").stdout


def test_create_global_writes_into_the_configuration_folder(tmp_path: Path) -> None:
    done = codeloop(tmp_path, "agent", "create", "--global", "mine")
    assert done.returncode == 0
    assert (tmp_path / "home/config/agent/mine.md").exists()
    assert "trust" not in done.stdout


@pytest.mark.parametrize("name", ["../x", "x.md"])
def test_create_refuses_names_that_are_none(tmp_path: Path, name: str) -> None:
    done = codeloop(tmp_path, "agent", "create", name)
    assert done.returncode == 2
    assert "can't be an agent's name" in done.stderr
    assert not list(tmp_path.rglob("*.md"))


@pytest.mark.slow
def test_run_command_expands_its_words(tmp_path: Path) -> None:
    write(tmp_path, "home/config/command/hi.md", "Greet $1 and $2: !`echo from the shell`")
    done = codeloop(
        tmp_path, "run", "--replay", replay(tmp_path), "--command", "hi", "Ann B", "Bob", "Cy"
    )
    assert (done.returncode, done.stdout) == (0, "Hi!\n")
    exported = json.loads(codeloop(tmp_path, "export").stdout)
    texts = [part["text"] for part in exported["messages"][0]["parts"]]
    assert texts == ['/hi "Ann B" Bob Cy', "Greet Ann B and Bob Cy: from the shell"]


def test_run_command_needs_no_words_and_leaves_stdin_alone(tmp_path: Path) -> None:
    done = codeloop(
        tmp_path, "run", "--replay", replay(tmp_path), "--command", "init", stdin="not read"
    )
    assert done.returncode == 0
    assert "not read" not in codeloop(tmp_path, "export").stdout


def test_a_command_that_is_not_there_makes_no_session(tmp_path: Path) -> None:
    done = codeloop(tmp_path, "run", "--replay", replay(tmp_path), "--command", "nope")
    assert done.returncode == 1
    assert "Command not found: nope" in done.stderr
    assert codeloop(tmp_path, "session", "list").stdout == ""


@pytest.mark.slow
def test_headless_a_shell_line_that_has_to_be_asked_for_is_denied(tmp_path: Path) -> None:
    write(tmp_path, "home/config/command/make.md", "!`touch made`")
    write(tmp_path, "home/config/codeloop.json", '{"permission": {"bash": "ask"}}')
    done = codeloop(tmp_path, "run", "--replay", replay(tmp_path), "--command", "make")
    assert done.returncode == 5
    assert "touch made" in done.stderr
    assert not (tmp_path / "work/made").exists()
    assert (
        codeloop(
            tmp_path, "run", "--replay", replay(tmp_path), "--auto", "--command", "make"
        ).returncode
        == 0
    )
    assert (tmp_path / "work/made").exists()


def test_a_shell_line_ends_at_the_time_limit(tmp_path: Path) -> None:
    write(tmp_path, "home/config/command/wait.md", "!`sleep 60`")
    done = codeloop(
        tmp_path, "run", "--replay", replay(tmp_path), "--timeout", "0.3", "--command", "wait"
    )
    assert done.returncode == 124


def test_nothing_of_an_untrusted_projects_command_runs(tmp_path: Path) -> None:
    write(tmp_path, "work/.codeloop/command/init.md", "!`touch pwned`")
    write(tmp_path, "work/.opencode/command/evil.md", "!`touch pwned`")
    done = codeloop(tmp_path, "run", "--replay", replay(tmp_path), "--command", "init")
    assert done.returncode == 0
    assert done.stderr.count("is not trusted") == 1
    assert (
        codeloop(tmp_path, "run", "--replay", replay(tmp_path), "--command", "evil").returncode == 1
    )
    assert not (tmp_path / "work/pwned").exists()
