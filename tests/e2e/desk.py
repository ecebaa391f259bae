"""A home, a project with a mistake in it, a model service, and the program on a terminal."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.model import CART, TESTS
from tests.support import programs
from tests.support.programs import ROOT, ProgramFolders, commit_all, environment_in, process, provider_at


class EndToEnd(ProgramFolders):
    """What the program is started with, and where."""

    @property
    def environment(self) -> dict[str, str]:
        """What the program is started with."""
        return environment_in(self.home) | {"LANG": "C.UTF-8", "COLORTERM": "truecolor"}

    @property
    def config(self) -> dict[str, Any]:
        """The person's configuration: the model service, and a question before each command."""
        chosen = {"model": "mine/coder", "small_model": "mine/coder"}
        return chosen | {"provider": {"mine": provider_at(self.model_url, "coder")}, "permission": {"bash": "ask"}}

    def configure(self) -> None:
        """Write the person's configuration."""
        folder = programs.configure(self.home, self.config)
        (folder / "tui.json").write_text('{"leader_timeout": 60000}')  # a busy machine is slower than a person


@contextmanager
def end_to_end(folder: Path) -> Generator[EndToEnd]:
    """Yield a fresh home and project, and a running model service."""
    with process([sys.executable, "-m", "tests.e2e.model"], ROOT, None) as url:
        desk = EndToEnd(folder, url)
        desk.project.mkdir(parents=True)
        (desk.project / ".gitignore").write_text("__pycache__/\n")
        (desk.project / "cart.py").write_text(CART)
        (desk.project / "test_cart.py").write_text(TESTS)
        commit_all(desk.project)
        desk.configure()
        yield desk


@contextmanager
def serving(desk: EndToEnd) -> Generator[str]:
    """Run `codeloop serve` in the project and yield its URL."""
    with programs.serving(desk.project, desk.environment) as url:
        yield url
