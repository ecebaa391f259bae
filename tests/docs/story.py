"""Run the blocks of a page as one story: one bash script in a home and a project of its own,
against a real server.

`sh` is run. `console` is run, and what it prints is compared. Anything else is the content of the
file that the sentence before it names; the program must take it up without a complaint.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tests.cli.program import loaded
from tests.docs.pages import ROOT, Block, is_run
from tests.support.sandbox_support import has_sandbox

BIN = Path(sys.executable).parent
PROGRAM = Path(__file__).with_name("bin")
KEY = "sk-ant-0123456789abcdefghij"
TYPED = {r"codeloop auth login \w+$": KEY}
"""Commands that ask at a terminal, and the lines that are typed, joined by `|`."""

ID = re.compile(r"(?:ses|msg|prt|evt|call)_")

PRELUDE = """\
set -euo pipefail
exec 9> "$RUN/trace"
BASH_XTRACEFD=9 PS4='+$SECONDS '
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT
make() { command make --no-print-directory -o .venv/.ready -o .venv/.program-ready -C "$CLONE" "$@"; }
set -x
"""


def script(blocks: list[Block], run: Path) -> str:
    """Return the story of a page as a script; each block leaves its number in
    `run/ran` when it has been run.
    """
    lines = [PRELUDE]
    for number, block in enumerate(blocks):
        match block.language:
            case "sh":
                lines += [runnable(line) for line in block.lines() if is_run(line)]
            case "console":
                for step, (command, _) in enumerate(block.steps()):
                    lines += [f"{{ {runnable(command)}", f'}} > "$RUN/{number}.{step}" 2>&1']
            case kind:
                assert kind, f"{block.place}: a block says what it is"
                (run / str(number)).write_text(block.text)
                path = block.file.replace("~", "$HOME", 1)
                lines += [f'mkdir -p "$(dirname "{path}")"', f'cp "$RUN/{number}" "{path}"']
                lines += [f'codeloop debug config 2> "$RUN/{number}.said" > /dev/null']
        lines.append(f'echo {number} >> "$RUN/ran"')
    return "\n".join(lines)


def runnable(line: str) -> str:
    """Return a line as it is run: with a terminal where it asks,
    and the exit code that its comment names checked.
    """
    bare = re.sub(r"(^|\s)#.*", "", line).strip()
    for pattern, typed in TYPED.items():
        if re.match(pattern, bare):
            return f'python "$CLONE/tests/docs/typist.py" {shlex.quote(typed)} {bare}'
    code = re.search(r"#.*\bexit code (\d+)", line)
    return f"{bare} && exit 1 || test $? -eq {code[1]}" if code and code[1] != "0" else line


@dataclass(frozen=True, slots=True)
class Told:
    """What became of a story: how it ended, what it traced,
    and the numbers of the blocks that were run.
    """

    run: Path
    code: int
    output: str
    ran: list[int]

    def printed(self, number: int, step: int) -> str:
        """Return what a command of a console block printed."""
        return (self.run / f"{number}.{step}").read_text(encoding="utf-8", errors="replace")

    def said(self, number: int) -> str:
        """Return what the program said of a file that was put in place,
        but for that it is to be trusted first.
        """
        path = self.run / f"{number}.said"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return "".join(line for line in lines if "was trusted, but has changed since" not in line)


def tell(blocks: list[Block], folder: Path, url: str, **environment: str) -> Told:
    """Run a story in `folder`; every provider that pages name is served by the server at `url`."""
    run = folder / "run"
    run.mkdir()
    make_project(folder)
    if not has_sandbox():  # pages tell of a machine where commands need no question
        allowed = folder / ".config/opencode/opencode.json"
        allowed.parent.mkdir(parents=True)
        allowed.write_text('{"permission": {"bash": {"*": "allow"}}}')
    done = subprocess.run(
        ["timeout", "600", "bash", "-c", script(blocks, run)],
        cwd=folder / "project",
        env={**surroundings(folder, url), **environment, "RUN": str(run)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    ran = (
        [int(number) for number in (run / "ran").read_text().split()]
        if (run / "ran").exists()
        else []
    )
    trace = "\n".join((run / "trace").read_text().splitlines()[-15:])
    return Told(run, done.returncode, f"{trace}\n{done.stdout[-3000:]}{done.stderr[-3000:]}", ran)


def surroundings(folder: Path, url: str) -> dict[str, str]:
    """Return the environment of a reader: an own home, the program on the PATH,
    services that are near.
    """
    service = {"options": {"baseURL": url}}
    providers = dict.fromkeys(("anthropic", "openai", "ollama", "mine", "local"), service)
    return {
        "PATH": os.pathsep.join([str(PROGRAM), str(BIN), os.environ["PATH"]]),
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        # A file that is edited within the second, to the same size,
        # would be run as it was compiled before.
        "PYTHONDONTWRITEBYTECODE": "1",
        "CLONE": str(ROOT),
        "LOADED": str(loaded().socket),
        "CODELOOP_DISABLE_MODELS_FETCH": "1",
        "CODELOOP_CONFIG_CONTENT": json.dumps({"provider": providers}),
        "MY_KEY": KEY,
        "LOCAL_KEY": KEY,
    }


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060"
    "0000000500015ef2d0960000000049454e44ae426082"
)
PROJECT = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": "import unittest\nfrom calc import add\n\n\nclass TestAdd(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n",
    "README.md": "# A calculator\n",
    "docs/testing.md": "Every function has a test.\n",
}


def make_project(folder: Path) -> None:
    """Make the project that the pages work on: a repository with one commit
    and a test that fails.
    """
    project = folder / "project"
    for name, text in PROJECT.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / ".gitconfig").write_text("[user]\n\tname = Reader\n\temail = reader@example.com\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    for command in (["init", "-qb", "main"], ["add", "."], ["commit", "-qm", "A calculator"]):
        subprocess.run(["git", *command], cwd=project, env=environment, check=True)
    (project / "screenshot.png").write_bytes(PNG)
    (project / "key.txt").write_text(f"{KEY}\n")


def difference(shown: str, printed: str) -> str:
    """Return how what was printed differs from what a page shows; empty when it does not.

    `...` stands for any text of a line, alone on a line for any lines.
    Of a line of JSON the numbers, ids and what
    is `...` may differ.
    """
    expected, real = (
        [line.rstrip() for line in text.rstrip().splitlines()] for text in (shown, printed)
    )
    if not expected:
        return ""
    if any(line.strip() == "..." for line in expected):
        pattern = "".join(
            r"(?:.*\n)*?" if line.strip() == "..." else line_pattern(line) + r"\n"
            for line in expected
        )
        is_same = re.fullmatch(pattern, "".join(f"{line}\n" for line in real))
        return "" if is_same else f"--- shown\n{shown}\n--- printed\n{printed}"
    for one, other in zip_longest(expected, real, fillvalue=""):
        if one.startswith("{") and other.startswith("{"):
            if not is_alike(json.loads(one), json.loads(other)):
                return f"--- shown\n{one}\n--- printed\n{other}"
        elif not re.fullmatch(line_pattern(one), other):
            return f"--- shown\n{shown}\n--- printed\n{printed}\n--- at\n{one}\n{other}"
    return ""


def line_pattern(line: str) -> str:
    """Return the expression that a shown line stands for."""
    return ".*".join(map(re.escape, line.split("...")))


def is_alike(shown: Any, real: Any) -> bool:
    """Return whether JSON has the shape that is shown: the same fields and texts;
    numbers and ids may differ.
    """
    match shown, real:
        case dict(), dict():
            return shown.keys() == real.keys() and all(
                is_alike(value, real[key]) for key, value in shown.items()
            )
        case list(), list():
            return len(shown) == len(real) and all(map(is_alike, shown, real))
        case bool(), _:
            return shown is real
        case int() | float(), int() | float():
            return not isinstance(real, bool)
        case str(), str():
            if name := ID.match(shown):
                return real.startswith(name[0])
            return bool(re.fullmatch(line_pattern(shown), real, re.DOTALL))
        case _:
            return bool(shown == real)
