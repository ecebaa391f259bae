"""The agents that the bench measures: codeloop, and any other command line,
each in a home and a project of its own.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers import make_path
from bench.process_runner import Command

PROMPT = "hi"
# More than the longest scenario has, which is that of step 1,000.
MAX_STEPS = "2000"
CODELOOP = str(Path(sys.executable).parent / "codeloop")

CODELOOP_CONFIG = """{
  "provider": {"bench": {
    "npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "{url}", "apiKey": "bench"}, "models": {"m": {}}
  }},
  "model": "bench/m"
}"""

# A small project, so that an agent has something to list, to read and to take snapshots of.
PROJECT_FILES = {
    "README.md": "# A small project\n\nIt adds numbers.\n",
    "add.py": "def add(a: int, b: int) -> int:\n    return a + b\n",
    "test_add.py": "from add import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """One agent, as command lines with placeholders.

    In `argv`, `version`, `scripted` and the values of `environ`, {url} (of the model server),
    {prompt}, {home}, {project} and {script} are filled in.
    """

    name: str
    argv: Sequence[str]
    version: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    scripted: Sequence[str] = ()
    """The command line whose model is the file {script} instead of a server;
    empty: there is none.
    """


def make_codeloop() -> Subject:
    """Return codeloop as it is installed for this Python."""
    run = (CODELOOP, "run", "--auto", "--max-steps", MAX_STEPS)
    return Subject(
        name="codeloop",
        argv=(*run, "{prompt}"),
        version=(CODELOOP, "--version"),
        environ={
            "CODELOOP_HOME": "{home}/codeloop",
            "CODELOOP_CONFIG_CONTENT": CODELOOP_CONFIG,
        },
        scripted=(*run, "--replay", "{script}", "{prompt}"),
    )


_PI_PROGRAM = """
mkdir -p "$2/.pi/agent"
models='{"providers": {"bench": {"baseUrl": "%s", "api": "openai-completions", "apiKey": "k",
  "models": [{"id": "m"}]}}}'
printf "$models" "$1" > "$2/.pi/agent/models.json"
exec pi --offline --provider bench --model m -p "$3"
"""


def find_pi() -> Subject | None:
    """Return pi, an agent that starts commands without a sandbox;
    None if neither `bench.peers` nor the PATH has it.
    """
    path = make_path()
    if shutil.which("pi", path=path) is None:
        return None
    argv = ("sh", "-c", _PI_PROGRAM, "sh", "{url}", "{home}", "{prompt}")
    return Subject("pi", argv, ("pi", "--version"), environ={"PATH": path})


def make_other(
    line: str, environ: Sequence[str], name: str | None, version: str | None = None
) -> Subject:
    """Return the subject of a `--against` command line; `environ` holds NAME=VALUE lines.
    Raises ValueError.

    `version` is the command line that prints its version; by default the first word with --version.
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
class Installation:
    """A subject in a home and a project of its own."""

    subject: Subject
    home: Path
    project: Path

    def fill(self, template: Sequence[str], url: str = "", script: Path | None = None) -> Command:
        """Return the command of a template of the subject's command lines,
        with its placeholders filled in.
        """
        values = {
            "{url}": url,
            "{prompt}": PROMPT,
            "{home}": str(self.home),
            "{project}": str(self.project),
            "{script}": str(script),
        }
        environ = {
            name: _fill_placeholders(value, values) for name, value in self.subject.environ.items()
        }
        argv = [_fill_placeholders(part, values) for part in template]
        return Command(argv, self.project, {**_make_environment(self.home), **environ})


def install_subject(subject: Subject, folder: Path) -> Installation:
    """Make a home and a git project with a few files below `folder`, for a subject."""
    home, project = folder / subject.name / "home", folder / subject.name / "project"
    home.mkdir(parents=True)
    project.mkdir()
    for name, text in PROJECT_FILES.items():
        (project / name).write_text(text)
    git = ("git", "-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for command in (
        ("init", "--quiet"),
        ("add", "--all"),
        ("commit", "--quiet", "--message", "start"),
    ):
        subprocess.run([*git, *command], cwd=project, env=_make_environment(home), check=True)
    return Installation(subject, home, project)


def _make_environment(home: Path) -> dict[str, str]:
    """Return an environment that has nothing of the user's: keys and settings
    would change the figures.
    """
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


def _fill_placeholders(text: str, values: Mapping[str, str]) -> str:
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text
