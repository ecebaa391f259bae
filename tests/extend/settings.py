"""A project in a temporary folder and what is found of it,
with codeloop's own files below `home`.
"""

from pathlib import Path
from typing import Any

from codeloop.app.settings import ProjectSettings, Startup, find_settings


def settings_of(
    tmp_path: Path, *, trust: bool = True, directory: str = "", **settings: Any
) -> ProjectSettings:
    """Read the setting of `tmp_path / "work"`, or of a folder in it."""
    work = tmp_path / "work"
    (work / ".git").mkdir(parents=True, exist_ok=True)
    (work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    environment = {
        "CODELOOP_HOME": str(tmp_path / "home"),
        "HOME": str(tmp_path),
        "PATH": "/usr/bin:/bin",
    }
    return find_settings(
        Startup(directory=work / directory, environment=environment, settings=settings, trust=trust)
    )


def write(tmp_path: Path, name: str, text: str) -> Path:
    """Write a file and the folders above it."""
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file
