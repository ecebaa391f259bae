"""Programs that run during a test, in a temporary home and project."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CODELOOP_PROGRAM = Path(sys.executable).parent / "codeloop"
LISTENING_PREFIX = "opencode server listening on "


@dataclass(frozen=True)
class ProgramFolders:
    """A home, a project, and the base URL of a model service."""

    folder: Path
    model_url: str

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def home(self) -> Path:
        return self.folder / "home"


def make_environment(home: Path) -> dict[str, str]:
    """Return the variables for a program, without those of the person who runs the tests."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CODELOOP_HOME": str(home / "codeloop"),
        "CODELOOP_MODELS_URL": "http://127.0.0.1:9/",
    }


def make_provider_config(url: str, *models: str) -> dict[str, Any]:
    """Return the configuration of a provider whose service is at a base URL."""
    limit = {"limit": {"context": 131_072, "output": 16_384}}
    options = {"baseURL": url, "apiKey": "k"}
    return {
        "npm": "@ai-sdk/openai-compatible",
        "options": options,
        "models": dict.fromkeys(models, limit),
    }


def write_config(home: Path, config: dict[str, Any]) -> Path:
    """Write the global configuration and return its folder."""
    file = home / "codeloop" / "config" / "codeloop.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(config))
    return file.parent


def commit_all(project: Path, message: str = "first") -> None:
    """Commit all files of a folder, which is made a repository first."""
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", message]):
        subprocess.run(["git", *who, *words], cwd=project, check=True)


@contextmanager
def run_program(
    command: list[str], cwd: Path, env: Mapping[str, str] | None, begins: str = ""
) -> Generator[str]:
    """Run a program and yield its first line of output, without the prefix `begins`;
    then end it and its children.
    """
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=None if env is None else dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            assert running.stdout
            line = running.stdout.readline().strip()
            assert line.startswith(begins), f"{command[0]} said {line!r}"
            yield line.removeprefix(begins)
        finally:
            running.terminate()
            try:
                running.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)


@contextmanager
def run_server(project: Path, environment: Mapping[str, str]) -> Generator[str]:
    """Run `codeloop serve` in a project and yield its URL."""
    with run_program(
        [str(CODELOOP_PROGRAM), "serve", "--port", "0"], project, environment, LISTENING_PREFIX
    ) as url:
        yield url
