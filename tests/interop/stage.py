"""Sets up interop tests: third-party programs in a cache, a project, a model service,
our server.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import programs
from tests.support.programs import (
    ROOT,
    ProgramFolders,
    commit_all,
    make_environment,
    make_provider_config,
    run_program,
)

INTEROP_FOLDER = Path(__file__).resolve().parent
PASSWORD = "a password for interop"


def find_cache(name: str, *inputs: Path) -> Path:
    """Return a folder outside the repository for what these files ask for;
    a change of them is another folder.
    """
    base = (
        os.environ.get("CODELOOP_INTEROP_CACHE")
        or os.environ.get("XDG_CACHE_HOME")
        or Path.home() / ".cache"
    )
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in inputs)).hexdigest()[:12]
    return Path(base) / "codeloop-interop" / f"{name}-{digest}"


def fill_folder(folder: Path, inputs: list[Path], commands: list[list[str]]) -> Path:
    """Fill a folder once, whoever asks at the same time;
    what can't be got is a reason to skip, not a failure.
    """
    missing = [command[0] for command in commands if shutil.which(command[0]) is None]
    if missing:
        pytest.skip(f"there is no {missing[0]} on the PATH")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for path in inputs:
            target = folder / path.name
            # Only what differs: a program of another worker may be reading it.
            if not target.exists() or target.read_bytes() != path.read_bytes():
                shutil.copy(path, target)
        if (folder / ".complete").exists():
            return folder
        for command in commands:
            try:
                done = subprocess.run(
                    command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
                )
            except subprocess.TimeoutExpired:
                pytest.skip(f"{' '.join(command[:4])} took too long")
            if done.returncode:
                pytest.skip(
                    f"{' '.join(command[:4])} failed: {(done.stderr or done.stdout)[:1000]}"
                )
        (folder / ".complete").touch()
    return folder


def install_npm_packages() -> Path:
    """Return a folder with the reference's client and program, of the locked versions,
    and our drivers of it.
    """
    inputs = [INTEROP_FOLDER / "package.json", INTEROP_FOLDER / "package-lock.json"]
    install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]
    drivers = [INTEROP_FOLDER / name for name in ("sdk.mjs", "launch.mjs", "tour.mjs")]
    return fill_folder(
        find_cache("npm", *inputs), [*inputs, *drivers], [["node", "--version"], install]
    )


def find_reference_program() -> str:
    """Return the path of the reference's program for this machine."""
    for path in sorted(install_npm_packages().glob("node_modules/opencode-*/bin/opencode")):
        if (
            subprocess.run(
                [path, "--version"], capture_output=True, timeout=60, check=False
            ).returncode
            == 0
        ):
            return str(path)
    pytest.skip("the reference's program does not run on this machine")


def make_python_environment(name: str, wanted: Path) -> Path:
    """Return the folder of an environment with what a requirements file lists,
    which is everything that it needs.

    Without `--no-deps`, pip looks for `pydantic[email]` beside the listed `pydantic==`,
    and refuses the newer one.
    """
    pip = [
        "bin/python",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        "--retries=1",
        "-qq",
    ]
    install = ["env", *pip, "install", "--no-deps", "--require-hashes", "-r", wanted.name]
    commands = [[sys.executable, "-m", "venv", "."], install, ["env", *pip, "check"]]
    return fill_folder(find_cache(name, wanted), [wanted], commands)


def make_checker_environment() -> Path:
    """Return the bin folder of an environment with what checks the document."""
    return make_python_environment("checker", INTEROP_FOLDER / "requirements.txt") / "bin"


class Stage(ProgramFolders):
    """A home, a project in a repository and a model service."""

    @property
    def config(self) -> dict[str, Any]:
        return {
            "model": "mine/coder",
            "small_model": "mine/talker",
            "provider": {
                "mine": make_provider_config(self.model_url, "coder", "talker", "sleeper")
            },
            "permission": {"bash": "ask", "edit": "allow"},
            "command": {"greet": {"template": "Say hello to $ARGUMENTS."}},
        }

    def configure(self, config: dict[str, Any]) -> None:
        """Write the person's configuration."""
        programs.write_config(self.home, config)

    @property
    def environment(self) -> dict[str, str]:
        """What every program is started with."""
        return make_environment(self.home) | {
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "OPENCODE_SERVER_PASSWORD": PASSWORD,
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        }

    def ask(
        self,
        command: list[str],
        more: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 120,
        stdin: str = "",
    ) -> "subprocess.CompletedProcess[str]":
        """Run a program to its end."""
        return subprocess.run(
            command,
            cwd=cwd or self.project,
            env=self.environment | dict(more or {}),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


@contextmanager
def open_stage(folder: Path) -> Generator[Stage]:
    """Yield a fresh home and project, and a running model service."""
    with run_program([sys.executable, "-m", "tests.interop.models"], ROOT, None) as url:
        stage = Stage(folder, url)
        for path in (stage.project / "src", folder / "bin"):
            path.mkdir(parents=True)
        stage.configure(stage.config)
        (stage.project / "src" / "main.py").write_text("print('interop')\n")
        commit_all(stage.project)
        yield stage


@contextmanager
def run_server(stage: Stage) -> Generator[str]:
    """Run `codeloop serve` in the project and yield its URL."""
    with programs.run_server(stage.project, stage.environment) as url:
        yield url
