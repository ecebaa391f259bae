"""Programs of others that tests install once for themselves, from the registries: what can't be had is skipped."""

import re
import sys
from pathlib import Path

from tests.interop.stage import filled

CACHE = Path.home() / ".cache" / "codeloop-tests"


def python_programs(*packages: str) -> Path:
    """Return the folder of programs of an environment with these packages."""
    pip = ["bin/python", "-m", "pip", "--disable-pip-version-check", "--no-input", "--retries=1", "-qq"]
    commands = [[sys.executable, "-m", "venv", "."], ["env", *pip, "install", *packages]]
    return filled(CACHE / _named("pip", packages), [], commands) / "bin"


def npm_programs(*packages: str) -> Path:
    """Return the folder of programs of a folder with these packages."""
    install = ["npm", "install", "--prefix", ".", "--no-audit", "--no-fund", "--fetch-retries=1", *packages]
    return filled(CACHE / _named("npm", packages), [], [["node", "--version"], install]) / "node_modules" / ".bin"


def _named(kind: str, packages: tuple[str, ...]) -> str:
    return "-".join((kind, *(re.sub(r"[^\w.]+", "-", each) for each in packages)))
