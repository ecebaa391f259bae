"""What lies in the folder that codeloop is started in stands in for nothing that it starts."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codeloop.config.project_root import find_project_root
from codeloop.extend.host.javascript.runtime import NoRuntime, javascript_command
from codeloop.extend.mcp.sign_in.callback import open_browser
from codeloop.kit.processes import start_outside
from codeloop.tui.terminal import read_clipboard
from codeloop.tui.terminal.desktop import give, open_link
from codeloop.tui.terminal.pictures.detect import terminal_of_tmux
from codeloop.tui.widgets.prompt.external_editor import EditorFailed, run_editor
from codeloop.workspace.search.ripgrep import Ripgrep
from tests.extend.mcp.world import paths_of

PROGRAMS = ("git", "rg", "node", "bun", "npm", "tmux", "xdg-open", "wl-copy", "wl-paste", "xclip", "nano", "firefox")


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a project that has programs of such names in folders that the PATH leads to by relative names."""
    found = tmp_path / "mark"
    for folder in (tmp_path / "work", tmp_path / "work" / "node_modules" / ".bin"):
        folder.mkdir(parents=True)
        for name in PROGRAMS:
            (folder / name).write_text(f"#!/bin/sh\necho $0 >> {found}\n")
            (folder / name).chmod(0o755)
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("PATH", ".::node_modules/.bin:./node_modules/.bin:/nonexistent")
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setenv("BROWSER", "firefox")
    return found


async def refused(editor: str) -> None:
    with pytest.raises(EditorFailed):
        await run_editor("text", [editor])


async def not_installed() -> None:
    with pytest.raises(FileNotFoundError):
        await start_outside(("nano",))


@pytest.mark.parametrize(
    "start",
    [
        not_installed,
        lambda: refused("nano"),
        lambda: open_link(("xdg-open", "https://example.com")),
        lambda: give("text", [("wl-copy",), ("xclip", "-in")]),
        read_clipboard.text,
        read_clipboard.image,
        terminal_of_tmux,
        lambda: open_browser("https://example.com"),
    ],
)
async def test_programs_of_the_desktop_are_none_of_the_project(start: Callable[[], object], mark: Path) -> None:
    found = start()
    if asyncio.iscoroutine(found):
        await found
    assert not mark.exists()


async def test_neither_git_nor_rg_nor_node_is_the_projects(tmp_path: Path, mark: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), (*who, "commit", "--allow-empty", "-qm1")):
        subprocess.run(["/usr/bin/git", *words], check=True)
    find_project_root(Path.cwd(), paths_of(tmp_path), dict(os.environ))
    assert not (await Ripgrep().program(dict(os.environ))).startswith(str(Path.cwd()))
    with pytest.raises(NoRuntime):
        javascript_command(os.environ["PATH"])
    assert not mark.exists()


async def test_a_version_managers_program_does_not_search(tmp_path: Path) -> None:
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "manager").write_text("\x7fELF")
    (shims / "rg").write_text("#!/bin/sh\necho ripgrep 14.0\n")
    for program in (shims / "manager", shims / "rg"):
        program.chmod(0o755)
    assert not (await Ripgrep().program({"PATH": str(shims)})).startswith(str(shims))
    (shims / "rg").unlink()
    (shims / "rg").symlink_to(shims / "manager")
    assert not (await Ripgrep().program({"PATH": str(shims)})).startswith(str(shims))


def test_no_module_of_the_folder_is_imported(tmp_path: Path) -> None:
    for name in ("asyncio", "click", "codeloop_x", "json", "msgspec", "pathlib", "sqlite3", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')\nraise SystemExit('planted')\n")
    command = [sys.executable, "-m", "codeloop", "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, (tmp_path / "mark").exists()) == (0, False), done.stderr
