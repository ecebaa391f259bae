"""Checks that an installed program really contains the language server: older versions
and links of rustup may not.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from codeloop.kit.small_files import read_start

_MAX_MANIFEST_BYTES = 1_000_000


def has_server(program: str, packages: Mapping[str, str]) -> bool:
    """Return whether a program contains the server, without running it.

    `packages`: by program, the npm package with the lowest major version that contains
    the server (`typescript@7`).
    """
    path = Path(program)
    if (requirement := packages.get(path.name)) is not None:
        package, _, min_version = requirement.rpartition("@")
        return _read_major_version(path, package) >= int(min_version)
    # rustup creates a link for each possible program of a toolchain, installed or not.
    return not _is_link_of_rustup(path) or _is_in_toolchain(path.name)


def _read_major_version(program: Path, package: str) -> int:
    """Return the major version of the npm package that a program belongs to; 0: unknown."""
    # The program is `node_modules/.bin/NAME`, beside the package,
    # or a link into the package's own folder.
    name = package.rpartition("/")[2]
    folders_above = (
        folder for folder in Path(os.path.realpath(program)).parents if folder.name == name
    )
    for folder in (program.parents[1] / package, *folders_above):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            manifest = json.loads(read_start(folder / "package.json", _MAX_MANIFEST_BYTES))
            return int(manifest["version"].partition(".")[0])
    return 0


def _is_link_of_rustup(program: Path) -> bool:
    with suppress(OSError):
        return program.samefile(program.with_name("rustup"))
    return False


def _is_in_toolchain(name: str) -> bool:
    home = Path(os.environ.get("RUSTUP_HOME") or Path.home() / ".rustup")
    return any(home.glob(f"toolchains/*/bin/{name}"))
