"""Installs third-party programs for tests, once, from the registries;
if that fails the test is skipped.
"""

import re
import sys
from pathlib import Path

from tests.interop.stage import fill_folder

CACHE_FOLDER = Path.home() / ".cache" / "codeloop-tests"


def install_python_programs(*packages: str) -> Path:
    """Return the folder of programs of a virtual environment with these Python packages."""
    pip = [
        "bin/python",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        "--retries=1",
        "-qq",
    ]
    commands = [[sys.executable, "-m", "venv", "."], ["env", *pip, "install", *packages]]
    return fill_folder(CACHE_FOLDER / _make_folder_name("pip", packages), [], commands) / "bin"


def install_npm_programs(*packages: str) -> Path:
    """Return the folder of programs of these npm packages."""
    install = [
        "npm",
        "install",
        "--prefix",
        ".",
        "--no-audit",
        "--no-fund",
        "--fetch-retries=1",
        *packages,
    ]
    folder = CACHE_FOLDER / _make_folder_name("npm", packages)
    return fill_folder(folder, [], [["node", "--version"], install]) / "node_modules" / ".bin"


def _make_folder_name(kind: str, packages: tuple[str, ...]) -> str:
    return "-".join((kind, *(re.sub(r"[^\w.]+", "-", each) for each in packages)))
