"""A repository on a local host, a checkout of it in a desk,
and the real program that handles events there.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.automation.ci.github_server import REPOSITORY, GitHubServer
from tests.cli.program import KEY, Desk
from tests.support.model_server import ModelServer

CALC = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a * 2\n"
TEST = (
    "import unittest\nfrom calc import add\n\n\nclass TestAdd(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n"
)
LIMITS = {"automation.CI_RETRY": 5, "automation.CI_POLL": 50, "automation.CI_CLAIM_DELAY": 10}


def make_bare(folder: Path, files: dict[str, str]) -> Path:
    """Make a bare repository with one commit on main."""
    bare, seed = folder / "origin.git", folder / "seed"
    run("git", "init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    run("git", "init", "--quiet", "--initial-branch=main", str(seed))
    commit(seed, files, "Start")
    run("git", "push", "--quiet", str(bare), "main", cwd=seed)
    return bare


def commit(folder: Path, files: dict[str, str], message: str) -> None:
    """Write files and commit them."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    run("git", "add", "--all", cwd=folder)
    run(
        "git",
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@e.org",
        "commit",
        "--quiet",
        "-m",
        message,
        cwd=folder,
    )


def run(*command: str, cwd: Path | None = None) -> str:
    """Run a program that must succeed, and return what it prints."""
    return subprocess.run(
        command, cwd=cwd, check=True, capture_output=True, text=True, timeout=60
    ).stdout


@dataclass(frozen=True)
class CiProject:
    """A repository on a local GitHub, and a desk with its checkout.
    `model`: the server that answers as a model.
    """

    folder: Path
    host: GitHubServer
    model: ModelServer

    @property
    def desk(self) -> Desk:
        return Desk(self.folder, limits=LIMITS)

    def branch(self, name: str, files: dict[str, str], start: str = "main") -> str:
        """Push a branch with a commit on top of one that is there, and return the commit."""
        seed = self.folder / "seed"
        run(
            "git",
            "fetch",
            "--quiet",
            str(self.host.bare),
            "+refs/heads/*:refs/remotes/o/*",
            cwd=seed,
        )
        run("git", "checkout", "--quiet", "--no-track", "-B", name, f"o/{start}", cwd=seed)
        commit(seed, files, f"Change on {name}")
        run("git", "push", "--quiet", str(self.host.bare), name, cwd=seed)
        return run("git", "rev-parse", "HEAD", cwd=seed).strip()

    def check_out(self) -> Path:
        """Make the checkout of a job: fresh, of the default branch, shallow."""
        work = self.folder / "work"
        run("rm", "-rf", str(work))
        run("git", "clone", "--quiet", "--depth=1", f"file://{self.host.bare}", str(work))
        return work

    def environment(self, event: str, payload: dict[str, Any], run_id: str) -> dict[str, str]:
        path = self.folder / f"event-{run_id}.json"
        path.write_text(json.dumps(payload))
        return {
            "GITHUB_TOKEN": self.host.token,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_API_URL": self.host.url,
            "GITHUB_SERVER_URL": self.host.url,
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_RUN_ID": run_id,
            "GITHUB_ENV": str(self.folder / "github-env"),
            "ACTIONS_RUNTIME_TOKEN": "runtime-secret",
        }

    def handle(
        self, event: str, payload: dict[str, Any], *flags: str, run_id: str = "1", **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `codeloop ci run` for an event in a fresh checkout."""
        self.check_out()
        self.desk.use(self.model)
        return self.desk.run(
            "ci", "run", *flags, **{**self.environment(event, payload, run_id), **more}
        )

    def show(self, branch: str, path: str = "calc.py") -> str:
        return self.host.git("show", f"{branch}:{path}")


SECRET = KEY
