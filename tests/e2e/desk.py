"""A home, a project with a mistake in it, a model service, and the program on a terminal."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.model import CART_SOURCE, TEST_SOURCE
from tests.support import programs
from tests.support.programs import (
    ROOT,
    ProgramFolders,
    commit_all,
    make_environment,
    make_provider_config,
    run_program,
)


class EndToEndDesk(ProgramFolders):
    """What the program is started with, and where."""

    @property
    def environment(self) -> dict[str, str]:
        """What the program is started with."""
        return make_environment(self.home) | {"LANG": "C.UTF-8", "COLORTERM": "truecolor"}

    @property
    def config(self) -> dict[str, Any]:
        """The person's configuration: the model service, and a question before each command."""
        chosen = {"model": "mine/coder", "small_model": "mine/coder"}
        return chosen | {
            "provider": {"mine": make_provider_config(self.model_url, "coder")},
            "permission": {"bash": "ask"},
        }

    def configure(self) -> None:
        """Write the person's configuration."""
        folder = programs.write_config(self.home, self.config)
        # A busy machine is slower than a person.
        (folder / "tui.json").write_text('{"leader_timeout": 60000}')

    def commit_more(self) -> None:
        """Add a second commit, and uncommitted work of the person's: a changed
        README and new notes.
        """
        (self.project / "README").write_text("A shop.\n")
        commit_all(self.project, "second")
        (self.project / "README").write_text("A shop.\n\nMy own line.\n")
        (self.project / "notes.txt").write_text("Mine.\n")


@contextmanager
def open_desk(folder: Path) -> Generator[EndToEndDesk]:
    """Yield a fresh home and project, and a running model service."""
    with run_program([sys.executable, "-m", "tests.e2e.model"], ROOT, None) as url:
        desk = EndToEndDesk(folder, url)
        desk.project.mkdir(parents=True)
        (desk.project / ".gitignore").write_text("__pycache__/\n")
        (desk.project / "cart.py").write_text(CART_SOURCE)
        (desk.project / "test_cart.py").write_text(TEST_SOURCE)
        commit_all(desk.project)
        desk.configure()
        yield desk


@contextmanager
def run_server(desk: EndToEndDesk) -> Generator[str]:
    """Run `codeloop serve` in the project and yield its URL."""
    with programs.run_server(desk.project, desk.environment) as url:
        yield url
