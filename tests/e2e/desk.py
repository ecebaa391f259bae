"""A home, a project with a mistake in it, a model service, and the program on a terminal."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.model import CART, TESTS
from tests.interop.stage import CODELOOP, LISTENING, ROOT, process


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """What the program is started with, and where."""

    folder: Path
    model_url: str

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of the person's who runs the tests."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "COLORTERM": "truecolor",
            "CODELOOP_HOME": str(self.home / "codeloop"),
            "CODELOOP_MODELS_URL": "http://127.0.0.1:9/",
        }

    @property
    def config(self) -> dict[str, Any]:
        """The person's configuration: the model service, and a question before each command."""
        models = {"coder": {"limit": {"context": 131_072, "output": 16_384}}}
        options = {"baseURL": self.model_url, "apiKey": "k"}
        service = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}
        chosen = {"model": "mine/coder", "small_model": "mine/coder"}
        return chosen | {"provider": {"mine": service}, "permission": {"bash": "ask"}}

    def configure(self) -> None:
        """Write the person's configuration."""
        file = self.home / "codeloop" / "config" / "codeloop.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(self.config))
        (file.parent / "tui.json").write_text('{"leader_timeout": 60000}')  # a busy machine is slower than a person


@contextmanager
def end_to_end(folder: Path) -> Generator[EndToEnd]:
    """Yield a fresh home and project, and a running model service."""
    with process([sys.executable, "-m", "tests.e2e.model"], ROOT, None) as url:
        desk = EndToEnd(folder, url)
        desk.project.mkdir(parents=True)
        (desk.project / ".gitignore").write_text("__pycache__/\n")
        (desk.project / "cart.py").write_text(CART)
        (desk.project / "test_cart.py").write_text(TESTS)
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "first"]):
            subprocess.run(["git", *who, *words], cwd=desk.project, check=True)
        desk.configure()
        yield desk


@contextmanager
def serving(desk: EndToEnd) -> Generator[str]:
    """Run `codeloop serve` in the project and yield its URL."""
    with process([str(CODELOOP), "serve", "--port", "0"], desk.project, desk.environment, LISTENING) as url:
        yield url
