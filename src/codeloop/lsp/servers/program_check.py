"""Checks that a program on the PATH really contains the language server that it is named after."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from codeloop.kit.jsonc import is_list, is_object
from codeloop.kit.small_files import read_start

_PACKAGE = re.compile(r"\{npm:([^{}:]+):([^{}:]+)\}")
_MAX_MANIFEST_BYTES = 1_000_000


def has_server(program: str, packages: Mapping[str, str]) -> bool:
    """Return whether a program contains the server, without running it.

    `packages`: by program, the npm package with the lowest major version that contains the server (`typescript@7`).
    """
    path = Path(program)
    if (requirement := packages.get(path.name)) is not None:
        package, _, least = requirement.rpartition("@")
        return _major_version(path, package) >= int(least)
    # rustup creates a link for each possible program of a toolchain, installed or not.
    return not _is_link_of_rustup(path) or _is_in_toolchain(path.name)


def _major_version(program: Path, package: str) -> int:
    """Return the major version of a program's npm package; 0: unknown."""
    name = package.rpartition("/")[2]
    homes = (folder for folder in Path(os.path.realpath(program)).parents if folder.name == name)
    for home in (program.parents[1] / package, *homes):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            return int(json.loads(read_start(home / "package.json", _MAX_MANIFEST_BYTES))["version"].partition(".")[0])
    return 0


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
    if not isinstance(value, str) or (match := _PACKAGE.fullmatch(value)) is None:
        return value
    for folder in folders:
        if (folder / match[1] / match[2]).is_file():
            return str(folder / match[1])
    raise LookupError(match[1])


def _is_link_of_rustup(program: Path) -> bool:
    with suppress(OSError):
        return program.samefile(program.with_name("rustup"))
    return False


def _is_in_toolchain(name: str) -> bool:
    home = Path(os.environ.get("RUSTUP_HOME") or Path.home() / ".rustup")
    return any(home.glob(f"toolchains/*/bin/{name}"))
