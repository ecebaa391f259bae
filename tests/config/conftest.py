"""A temporary home and project, and loading the configuration of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codeloop.config.load import LoadedConfig, load_config
from codeloop.config.paths import Paths, find_paths
from codeloop.config.project_root import ProjectRoot


@dataclass(frozen=True)
class World:
    """Folders to write configuration into."""

    top: Path
    paths: Paths
    root: Path

    def write(self, path: Path | str, content: Any) -> Path:
        """Write a file below the project (or at an absolute path);
        what is not text becomes JSON.
        """
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    def globally(self, content: Any) -> Path:
        """Write the person's own configuration."""
        return self.write(self.paths.config / "codeloop.json", content)

    def place(self, directory: str = "") -> ProjectRoot:
        """Return a folder of the project as a place."""
        folder = self.root / directory
        folder.mkdir(parents=True, exist_ok=True)
        return ProjectRoot(self.root, folder, "global", None)

    def load(
        self,
        directory: str = "",
        *,
        trusted: bool = True,
        environment: Mapping[str, str] | None = None,
        **given: Any,
    ) -> LoadedConfig:
        """Load the configuration as seen from a folder of the project."""
        return load_config(
            self.place(directory),
            self.paths,
            environment=environment or {},
            trusted=trusted,
            **given,
        )


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return an empty project and an empty home."""
    root = tmp_path / "project"
    root.mkdir()
    environment = {"HOME": str(tmp_path), "CODELOOP_HOME": str(tmp_path / "home")}
    return World(tmp_path, find_paths(environment), root)
