"""What is measured: codeloop, and any other command line beside it, each in a home and a project of its own."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.measure import Command

PROMPT = "hi"
STEPS_ALLOWED = "2000"
CODELOOP = str(Path(sys.executable).parent / "codeloop")

CONFIG = """{
  "provider": {"bench": {
    "npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "{url}", "apiKey": "bench"}, "models": {"m": {}}
  }},
  "model": "bench/m"
}"""

# A small project: what an agent lists, snapshots and reads on its way.
FILES = {
    "README.md": "# A small project\n\nIt adds numbers.\n",
    "add.py": "def add(a: int, b: int) -> int:\n    return a + b\n",
    "test_add.py": "from add import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """One agent. In `argv` and the values of `environ`, {url}, {prompt}, {home} and {project} are filled in."""

    name: str
    argv: Sequence[str]
    version: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    scripted: Sequence[str] = ()
    """The command line that takes its model from the file {script} instead of a server; empty: there is none."""


def codeloop() -> Subject:
    """Return codeloop as it is installed beside this Python."""
    run = (CODELOOP, "run", "--auto", "--max-steps", STEPS_ALLOWED)
    return Subject(
        name="codeloop",
        argv=(*run, "{prompt}"),
        version=(CODELOOP, "--version"),
        environ={
            "CODELOOP_HOME": "{home}/codeloop",
            "CODELOOP_CONFIG_CONTENT": CONFIG,
        },
        scripted=(*run, "--replay", "{script}", "{prompt}"),
    )


_PI = """
mkdir -p "$2/.pi/agent"
models='{"providers": {"bench": {"baseUrl": "%s", "api": "openai-completions", "apiKey": "k",
  "models": [{"id": "m"}]}}}'
printf "$models" "$1" > "$2/.pi/agent/models.json"
exec pi --offline --provider bench --model m -p "$3"
"""


def pi() -> Subject | None:
    """Return pi, which starts commands without a sandbox; None where it is not on the PATH."""
    if shutil.which("pi") is None:
        return None
    return Subject("pi", ("sh", "-c", _PI, "sh", "{url}", "{home}", "{prompt}"), ("pi", "--version"))


def another(line: str, environ: Sequence[str], name: str | None, version: str | None = None) -> Subject:
    """Return the subject of a `--against` command line; `environ` holds NAME=VALUE lines. Raises ValueError.

    `version` is the command line that says its version; by default the first word with --version.
    """
    argv = shlex.split(line)
    if not argv:
        raise ValueError("--against needs a command line, such as: --against 'agent run {prompt}'")
    if wrong := [pair for pair in environ if "=" not in pair]:
        raise ValueError(f"--against-env takes NAME=VALUE, not {wrong[0]!r}")
    return Subject(
        name=name or Path(argv[0]).name,
        argv=argv,
        version=shlex.split(version) if version else (argv[0], "--version"),
        environ=dict(pair.split("=", 1) for pair in environ),
    )


@dataclass(frozen=True, slots=True)
class Place:
    """A subject's own home and project; `fill` makes its command lines whole."""

    subject: Subject
    home: Path
    project: Path

    def fill(self, template: Sequence[str], url: str = "", script: Path | None = None) -> Command:
        """Return the command that `template` means here."""
        values = {
            "{url}": url,
            "{prompt}": PROMPT,
            "{home}": str(self.home),
            "{project}": str(self.project),
            "{script}": str(script),
        }
        own = {name: _filled(value, values) for name, value in self.subject.environ.items()}
        return Command([_filled(part, values) for part in template], self.project, {**_environ(self.home), **own})


def place(subject: Subject, folder: Path) -> Place:
    """Make a home and a git project with a few files below `folder`."""
    home, project = folder / subject.name / "home", folder / subject.name / "project"
    home.mkdir(parents=True)
    project.mkdir()
    for name, text in FILES.items():
        (project / name).write_text(text)
    git = ("git", "-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for command in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "start")):
        subprocess.run([*git, *command], cwd=project, env=_environ(home), check=True)
    return Place(subject, home, project)


def _environ(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_STATE_HOME": str(home / "state"),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "NO_PROXY": "127.0.0.1,localhost",
    }


def _filled(text: str, values: Mapping[str, str]) -> str:
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text
