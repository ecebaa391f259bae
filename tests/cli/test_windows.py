"""On Windows itself, of which only the missing modules and the name can be had here,
codeloop says in a line where it runs.
"""

import subprocess
import sys

import pytest

START = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in ("grp", "pwd", "resource", "fcntl", "termios"):
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Missing())
sys.platform = "win32"
from codeloop.cli.main import main
main()
"""


@pytest.mark.parametrize("words", [["run", "hello"], [], ["--help"], ["serve"], ["doctor"]])
def test_windows_itself_is_answered_with_where_codeloop_runs(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", START, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "WSL 2" in done.stderr
    assert "Traceback" not in done.stderr
