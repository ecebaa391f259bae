"""Starting up: what answers at once imports nothing heavy,
and the program runs in each of its forms.
"""

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from codeloop import __version__
from tests.cli.program import COMMAND, HANGING, Desk
from tests.cli.terminal import Terminal

HEAVY = {
    "httpx2",
    "jiter",
    "tree_sitter",
    "tree_sitter_bash",
    "rapidfuzz",
    "yaml",
    "pydantic",
    "html_to_markdown",
    "pypdf",
}
LOOK = f"import sys\ntry:\n    {COMMAND[2]}\nfinally:\n    print(*sys.modules, file=sys.stderr)"


@pytest.mark.parametrize(
    ("arguments", "more"),
    [
        (["--version"], {"asyncio", "click", "msgspec", "sqlite3"}),
        (["--help"], {"asyncio", "sqlite3"}),
    ],
)
def test_version_and_help_import_nothing_heavy(
    tmp_path: Path, arguments: list[str], more: set[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK, *arguments],
        **Desk(tmp_path).options(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout
    assert set(done.stderr.split()) & (HEAVY | more) == set()


def test_the_module_is_the_program(tmp_path: Path) -> None:
    options = Desk(tmp_path).options()
    module = [sys.executable, "-m", "codeloop", "--version"]
    done = subprocess.run(module, check=True, **options, capture_output=True, text=True)
    assert done.stdout == f"{__version__}\n"


def test_an_unknown_command_is_2(tmp_path: Path) -> None:
    done = Desk(tmp_path).run("rum")
    assert done.returncode == 2
    assert "rum" in done.stderr


def test_without_a_message_at_a_terminal_it_does_not_wait(tmp_path: Path) -> None:
    terminal = Terminal(Desk(tmp_path), "run")
    assert terminal.end() == 2
    assert "Give a task" in terminal.shown


INTERRUPT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == {name!r}:
            {where}

class Collected:
    def __del__(self):  # Python prints what is raised here, and goes on
        os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""
AT_IMPORT = {
    "of the module": "os.kill(os.getpid(), signal.SIGINT)",
    "in a callback of the import": "Collected()",
}


@pytest.mark.parametrize("where", AT_IMPORT.values(), ids=AT_IMPORT)
@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("click", ["--plain"]),
        ("asyncio", ["run", "hello"]),
        ("uvicorn", ["serve", "--port", "0"]),
        ("textual", []),
        ("codeloop.cli.chat.conversation", ["--plain"]),
        ("codeloop.cli.commands.sessions.session", ["session", "list"]),
    ],
)
def test_ctrl_c_while_a_module_is_imported_ends_it_silently(
    tmp_path: Path, module: str, arguments: list[str], where: str
) -> None:
    desk = Desk(tmp_path)
    code = INTERRUPT.format(name=module, where=where) + COMMAND[2]
    main, side = pty.openpty()
    started = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        **desk.options(TERM="xterm-256color"),
        stdin=side,
        stdout=side,
        stderr=side,
        check=False,
        timeout=HANGING,
    )
    os.set_blocking(main, False)
    with suppress(BlockingIOError):
        assert os.read(main, 65_536) == b""
    os.close(main)
    os.close(side)
    assert started.returncode == 130
