"""Entries of `plugin` in the configuration: paths, and names of packages,
resolved to what is loaded.
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

from codeloop.config.paths import Paths, get_plugin_path
from codeloop.extend.packages.lock_file import Registry, find_changed_file, read_lock
from codeloop.kit.jsonc import is_list, is_object

_PACKAGE_NAME = r"(?:(npm|pypi):)?((?:@\w[\w.-]*/)?\w[\w.-]*)(?:@([\w.^~*+!-]+))?"


class PackageName(NamedTuple):
    """A package as a configuration names it: `NAME`, `NAME@1.2` or `npm:NAME` (npm),
    `pypi:NAME` (PyPI).
    """

    registry: Registry
    name: str
    version: str = ""

    @property
    def entry(self) -> str:
        """The entry of the configuration, without the version."""
        return self.name if self.registry == "npm" else f"pypi:{self.name}"


def parse_package_name(entry: str) -> PackageName | None:
    """Parse the package name of an entry, or None."""
    match = re.fullmatch(_PACKAGE_NAME, entry)
    if match is None:
        return None
    return PackageName("pypi" if match[1] == "pypi" else "npm", match[2], match[3] or "")


def is_marked_policy(entry: Any) -> bool:
    """Return whether an entry of `plugin` is marked as a policy: `["./guard.py",
    {"policy": true}]`.
    """
    return (
        is_list(entry)
        and len(entry) == 2
        and is_object(entry[1])
        and entry[1].get("policy") is True
    )


def find_entry_path(name: str, base: Path, paths: Paths) -> Path | None:
    """Return the path that an entry of `plugin` names, whether it exists or not;
    None if the entry is invalid.
    """
    path = get_plugin_path(name, base, paths)
    if path is not None:
        return path
    package = parse_package_name(name)
    return get_package_folder(paths, package) if package is not None else None


def get_package_folder(paths: Paths, package: PackageName) -> Path:
    """Return where a package is installed."""
    return paths.data / "plugins" / f"{package.registry}+{package.name.replace('/', '+')}"


def resolve_entry(name: str, base: Path, paths: Paths) -> tuple[Path | None, str]:
    """Return the existing path of an entry of `plugin`, or None and the reason.
    `base`: the base of relative paths.
    """
    path = get_plugin_path(name, base, paths)
    if path is None:
        return find_installed_package(paths, name)
    return (path, "") if path.exists() else (None, f"{path} does not exist.")


def find_installed_package(paths: Paths, entry: str) -> tuple[Path | None, str]:
    """Return the path to load for a package's entry, or None and the reason: it is not installed,
    or has changed.
    """
    package = parse_package_name(entry)
    if package is None:
        return None, f"{entry!a} is neither a path nor a valid package name."
    folder = get_package_folder(paths, package)
    lock = read_lock(folder)
    if lock is None:
        return None, f"{entry} is not installed. `codeloop plugin add {entry}` installs it."
    # A range such as `^1` is not resolved here: it counts as satisfied by the version that it was
    # resolved to when installed.
    if package.version not in {"", lock.version, lock.wanted}:
        return (
            None,
            f"{entry} is wanted, {lock.version} is installed. `codeloop plugin add {entry}` changes that.",
        )
    if (changed_file := find_changed_file(folder, lock)) is not None:
        reason = f"{folder / changed_file} has changed since {package.name} was installed, so it is left out."
        return (
            None,
            f"{reason} `codeloop plugin add {package.entry}@{lock.version}` installs it anew.",
        )
    return folder / lock.entry, ""
