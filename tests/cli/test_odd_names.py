"""Names that are not UTF-8: commands, tools, undo and sessions work with them as with others."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, last_work, serving, steps
from tests.support.answers import Answer, Call

FILE, FOLDER, PROJECT = b"caf\xe9.txt", b"d\xe9", b"pr\xe9j"


def make_files(folder: bytes) -> None:
    (Path(os.fsdecode(folder)) / os.fsdecode(FOLDER)).mkdir()
    for name in (FILE, FOLDER + b"/z.txt"):
        Path(os.fsdecode(folder + b"/" + name)).write_text("old\n")


def make_calls(*calls: tuple[str, dict[str, str]]) -> list[Answer]:
    made = [
        Call(name, json.dumps(arguments), f"call_{at}")
        for at, (name, arguments) in enumerate(calls)
    ]
    return [*(Answer(calls=(call,)) for call in made), Answer(text="done")]


@pytest.mark.slow
def test_commands_tools_and_undo_work_on_files_with_odd_names(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.git("init", "-q")
    make_files(os.fsencode(desk.work))
    answers = make_calls(
        ("bash", {"command": "cat caf*"}),
        ("glob", {"pattern": "caf*"}),
        ("read", {"filePath": r"caf\xe9.txt"}),
        ("edit", {"filePath": r"caf\xe9.txt", "oldString": "old", "newString": "new"}),
        ("bash", {"command": "cat z.txt", "workdir": r"d\xe9"}),
        ("bash", {"command": "rm d*/z.txt"}),
    )
    with serving(steps(*answers)) as server:
        desk.use(server)
        ran = desk.run("run", "--auto", "go")
        results = [
            message["content"]
            for message in last_work(server).json["messages"]
            if message["role"] == "tool"
        ]
    assert ran.returncode == 0, ran.stderr
    assert results[:3] == ["old\n", r"caf\xe9.txt", "1: old"]
    assert results[3].startswith(r"Edited caf\xe9.txt")
    assert results[4] == "old\n"
    work = os.fsencode(desk.work)
    assert not list(Path(os.fsdecode(work + b"/" + FOLDER)).iterdir())
    assert "-old" in desk.run("session", "diff").stdout
    undone = desk.run("undo")
    assert undone.returncode == 0
    assert "re-created" in undone.stdout
    assert Path(os.fsdecode(work + b"/" + FILE)).read_text() == "old\n"
    assert [each.name for each in Path(os.fsdecode(work + b"/" + FOLDER)).iterdir()] == ["z.txt"]


@pytest.mark.slow
def test_a_project_whose_folder_has_an_odd_name_has_sessions_and_undo(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    project = os.fsencode(tmp_path) + b"/" + PROJECT
    Path(os.fsdecode(project)).mkdir()
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    make_files(project)
    options: dict[str, Any] = {**desk.options(), "cwd": project}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [*desk.command, *arguments],
            **options,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    with serving(steps(*make_calls(("write", {"filePath": "new.txt", "content": "x"})))) as server:
        desk.use(server)
        run("run", "--auto", "first prompt")
        run("run", "--auto", "--continue", "second prompt")
    assert "first prompt" in run("session", "list")
    assert "second prompt" in run("export")
    assert "Undone" in run("undo")
    assert "Undone" in run("undo")
    assert {os.fsencode(each.name) for each in Path(os.fsdecode(project)).iterdir()} == {
        b".git",
        FILE,
        FOLDER,
    }
