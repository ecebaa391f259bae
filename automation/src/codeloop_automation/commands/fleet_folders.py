"""Finds the folders of fleets by their names."""

import os
import re
from pathlib import Path

from codeloop.config.paths import find_paths
from codeloop.schema.errors import UsageProblem
from codeloop_automation.fleet.ledger_databases import list_fleets


def get_fleets_folder() -> Path:
    """Return the folder of all fleets of this machine."""
    return find_paths(os.environ).data / "fleet"


def get_folder(name: str) -> Path:
    """Return the folder of a fleet, which may not exist yet.
    Raises UsageProblem for an impossible name.
    """
    # The name becomes that of a folder, so `/`, `..` and a leading dash are refused.
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name) is None:
        raise UsageProblem(
            f"The name of a fleet is letters, digits, `.`, `_` and `-`, not {name}. Give one with --name."
        )
    return get_fleets_folder() / name


def find_fleet(name: str) -> Path:
    """Return the folder of a fleet. Raises UsageProblem where there is none."""
    folder = get_folder(name)
    if folder not in list_fleets(get_fleets_folder()):
        raise UsageProblem(f"There is no fleet {name}. `codeloop fleet status` lists them.")
    return folder
