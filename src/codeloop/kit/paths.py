"""Paths as users write them."""

import os
from contextlib import suppress
from pathlib import Path


def expand_user_path(name: str | os.PathLike[str]) -> Path:
    """Expand `~` and `~name` in a path; unknown users leave it unchanged."""
    with suppress(RuntimeError, ValueError):
        return Path(name).expanduser()
    return Path(name)
