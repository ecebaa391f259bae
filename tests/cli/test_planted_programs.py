"""What lies in the folder that codeloop is started in stands in for nothing that it starts."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codeloop.config.project_root import find_project_root
from codeloop.extend.host.javascript.runtime import NoRuntime, check_runtime
from codeloop.kit.desktop_programs import make_desktop_launch, open_browser
from codeloop.kit.programs import exclude_project_folders, find_program
from codeloop.tui.terminal.clipboard import (
    read_clipboard_image,
    read_clipboard_text,
    write_clipboard,
)
from codeloop.tui.terminal.pictures.protocol import query_outer_terminal
from codeloop.tui.terminal.terminal_app import run_opener
from codeloop.tui.widgets.prompt.prompt import EditorFailed, run_editor
from codeloop.workspace.search.ripgrep import Ripgrep
from tests.cli.program import Desk, bash, call, serving, steps
from tests.extend.mcp.world import paths_of
from tests.support.answers import Answer

PROGRAMS = (
    "git",
    "rg",
    "node",
    "bun",
    "npm",
    "tmux",
    "xdg-open",
    "wl-copy",
    "wl-paste",
    "xclip",
    "nano",
    "firefox",
)


@pytest.fixture(params=["relative", "absolute", "links"])
def mark(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a project that has programs of such names in folders of the PATH: by any name,
    or where links lead.
    """
    found, work = tmp_path / "mark", tmp_path / "work"
    for folder in (tmp_path / "work", tmp_path / "work" / "node_modules" / ".bin"):
        folder.mkdir(parents=True)
        for name in PROGRAMS:
            (folder / name).write_text(f"#!/bin/sh\necho $0 >> {found}\n")
            (folder / name).chmod(0o755)
    monkeypatch.chdir(tmp_path / "work")
    exclude_project_folders(work)
    (tmp_path / "linked").symlink_to(tmp_path / "work/node_modules/.bin")
    paths = {
        "relative": ".::node_modules/.bin:./node_modules/.bin:/nonexistent",
        "absolute": f"{work}:{work}/node_modules/.bin:/nonexistent",
        "links": f"{tmp_path}/linked:/nonexistent",
    }
    monkeypatch.setenv("PATH", paths[request.param])
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setenv("BROWSER", "firefox")
    return found


async def refused(editor: str) -> None:
    with pytest.raises(EditorFailed):
        await run_editor("text", [editor])


async def not_installed() -> None:
    with pytest.raises(FileNotFoundError):
        make_desktop_launch(("nano",))


@pytest.mark.parametrize(
    "start",
    [
        not_installed,
        lambda: refused("nano"),
        lambda: run_opener(("xdg-open", "https://example.com")),
        lambda: write_clipboard("text", [("wl-copy",), ("xclip", "-in")]),
        read_clipboard_text,
        read_clipboard_image,
        query_outer_terminal,
        lambda: open_browser("https://example.com"),
    ],
)
async def test_programs_of_the_desktop_are_none_of_the_project(
    start: Callable[[], object], mark: Path
) -> None:
    found = start()
    if asyncio.iscoroutine(found):
        await found
    assert not mark.exists()


async def test_neither_git_nor_rg_nor_node_is_the_projects(tmp_path: Path, mark: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), (*who, "commit", "--allow-empty", "-qm1")):
        subprocess.run(["/usr/bin/git", *words], check=True)
    find_project_root(Path.cwd(), paths_of(tmp_path), dict(os.environ))
    assert not (await Ripgrep().find_executable(dict(os.environ))).startswith(str(Path.cwd()))
    with pytest.raises(NoRuntime):
        check_runtime(os.environ["PATH"])
    assert not mark.exists()


async def test_a_version_managers_program_does_not_search(tmp_path: Path) -> None:
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "manager").write_text("\x7fELF")
    (shims / "rg").write_text("#!/bin/sh\necho ripgrep 14.0\n")
    for program in (shims / "manager", shims / "rg"):
        program.chmod(0o755)
    assert not (await Ripgrep().find_executable({"PATH": str(shims)})).startswith(str(shims))
    (shims / "rg").unlink()
    (shims / "rg").symlink_to(shims / "manager")
    assert not (await Ripgrep().find_executable({"PATH": str(shims)})).startswith(str(shims))


@pytest.mark.usefixtures("mark")
def test_a_link_to_a_program_of_the_project_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/git").symlink_to(tmp_path / "work/git")
    assert find_program("git", f"{tmp_path}/shared") is None
    assert find_program("git", f"{tmp_path}/shared", in_project=True) == f"{tmp_path}/shared/git"


def test_no_module_of_the_folder_is_imported(tmp_path: Path) -> None:
    for name in (
        "asyncio",
        "click",
        "codeloop_x",
        "json",
        "msgspec",
        "pathlib",
        "sqlite3",
        "sitecustomize",
    ):
        (tmp_path / f"{name}.py").write_text(
            f"open({str(tmp_path / 'mark')!r}, 'w')\nraise SystemExit('planted')\n"
        )
    command = [sys.executable, "-m", "codeloop", "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, (tmp_path / "mark").exists()) == (0, False), done.stderr


@pytest.mark.slow
def test_a_program_that_a_command_puts_into_an_active_environment_is_not_started_by_us(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    active = desk.work / ".venv/bin"
    (desk.work / ".venv/bin").mkdir(parents=True)
    (desk.work / "file").write_text("words\n")
    for words in (("init", "-q"), ("add", "file"), ("commit", "-qm", "1")):
        desk.git(*words)
    mark = tmp_path / "mark"
    text = f'#!/bin/sh\necho $0 $@ >> {mark}\nPATH=/usr/bin:/bin exec ${{0##*/}} "$@"\n'
    (desk.work / "plant.py").write_text(
        f"import os\nfor name in {(*PROGRAMS, 'uv', 'systemctl', 'crontab', 'ssh', 'openssl', 'sh', 'bash')}:\n"
        f"    open(f'.venv/bin/{{name}}', 'w').write({text!r})\n    os.chmod(f'.venv/bin/{{name}}', 0o755)\n"
    )
    environment = {"PATH": f"{active}:{os.environ['PATH']}", "VIRTUAL_ENV": str(active.parent)}
    edit = call("edit", filePath=str(desk.work / "file"), oldString="words", newString="others")
    answers = steps(
        bash(f"{sys.executable} -I plant.py"),
        call("grep", pattern="words"),
        edit,
        Answer(text="Done."),
    )
    with serving(answers) as server:
        desk.use(server)
        assert desk.run("run", "--title", "T", "work", **environment).returncode == 0
        assert (active / "git").exists()
        for words in (
            ("doctor",),
            ("worktree", "create", "x"),
            ("schedule", "list"),
            ("session", "list"),
        ):
            desk.run(*words, **environment)
    assert not mark.exists(), mark.read_text()
