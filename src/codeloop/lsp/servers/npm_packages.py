"""Finds npm packages on the disk, for servers whose settings name the folder of one."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codeloop.kit.jsonc import is_list, is_object

# Such as `{npm:typescript:lib/tsserver.js}`.
_PACKAGE_PATTERN = r"\{npm:([^{}:]+):([^{}:]+)\}"


def list_package_folders(program: str) -> list[Path]:
    """Return the folders of npm packages above a program, in the order in which Node searches them."""
    folders_above = [*Path(os.path.realpath(program)).parents, *Path(program).parents]
    return list(dict.fromkeys(each if each.name == "node_modules" else each / "node_modules" for each in folders_above))


def fill_packages(value: Any, folders: Sequence[Path]) -> Any:
    """Return a value with each text `{npm:FOLDER:FILE}` replaced by the nearest such folder of a package.

    Raises LookupError where no such folder with that file is in any of `folders`.
    """
    if is_object(value):
        return {key: fill_packages(each, folders) for key, each in value.items()}
    if is_list(value):
        return [fill_packages(each, folders) for each in value]
    if not isinstance(value, str) or (match := re.fullmatch(_PACKAGE_PATTERN, value)) is None:
        return value
    for folder in folders:
        if (folder / match[1] / match[2]).is_file():
            return str(folder / match[1])
    raise LookupError(match[1])
