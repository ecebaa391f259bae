"""Installs packages of npm and PyPI by their package managers, and writes their lock files."""

import re
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import Distribution, distributions
from importlib.util import find_spec
from pathlib import Path

import msgspec

from codeloop.extend.homes import ENTRY_POINT_GROUP
from codeloop.extend.packages.lock_file import (
    LockFile,
    get_lock_path,
    hash_files,
    hash_stats,
    write_lock,
)
from codeloop.extend.packages.manifest import MANIFEST
from codeloop.extend.packages.plugin_entries import PackageName
from codeloop.kit.remove_tree import remove_tree
from codeloop.kit.small_files import create_private_folder
from codeloop.net.hosts import OFFLINE_MESSAGE, is_offline
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import DECODE_ERRORS, JSON

_SITE_FOLDER = "site"
# A venv for the time of the installation, where Python has no pip of its own.
_VENV_FOLDER = "pip"
_SHIM_SOURCE = '''"""Made by `codeloop plugin add`: the plugin {module}, with what it needs beside it."""

import importlib
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "{site}"))
vars().update({{name: value for name, value in vars(importlib.import_module("{module}")).items() if name[:2] != "__"}})
'''

FindProgram = Callable[[str], str | None]
RunCommand = Callable[[Sequence[str]], None]


def install(package: PackageName, folder: Path, which: FindProgram, run: RunCommand) -> LockFile:
    """Install a package in `folder`, replacing its contents; write and return its lock file.

    `run`: runs a command visibly, and raises CodeloopError on failure: then nothing is changed.
    """
    if is_offline():
        raise CodeloopError(f"{package.name} can't be installed: {OFFLINE_MESSAGE}.")
    # Installed beside the old version, which is replaced only when everything has worked.
    new_folder = folder.with_name(f".{folder.name}.new")
    remove_tree(new_folder)
    create_private_folder(folder.parent)
    new_folder.mkdir()
    try:
        for command in _list_install_commands(package, new_folder, which):
            run(command)
        prepare_entry = _find_npm_entry if package.registry == "npm" else _prepare_pypi_entry
        version, entry = prepare_entry(package, new_folder)
        digests = hash_files(new_folder)
        remove_tree(folder)
        new_folder.rename(folder)
    finally:
        remove_tree(new_folder)
    lock = LockFile(
        name=package.name,
        version=version,
        registry=package.registry,
        entry=entry,
        files=digests,
        looked=hash_stats(folder),
        wanted=_choose_version(package),
    )
    write_lock(folder, lock)
    return lock


def uninstall(folder: Path) -> None:
    """Remove an installed package."""
    remove_tree(folder)
    get_lock_path(folder).unlink(missing_ok=True)


def _list_install_commands(
    package: PackageName, folder: Path, which: FindProgram
) -> list[list[str]]:
    """Return the commands that install a package in a folder,
    with the package manager that is there.
    """
    if package.registry == "npm":
        spec = f"{package.name}@{_choose_version(package)}"
        if npm := which("npm"):
            # Install scripts would run code of a package outside of any sandbox.
            quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
            return [[npm, "install", "--prefix", str(folder), *quiet, spec]]
        if bun := which("bun"):
            return [[bun, "add", "--cwd", str(folder), "--ignore-scripts", spec]]
        raise CodeloopError(
            f"{package.name} is a package of npm, which is installed with npm or bun: neither is on the PATH. "
            f"A package on PyPI is written pypi:{package.name}."
        )
    spec = f"{package.name}=={package.version}" if package.version else package.name
    target = ["install", "--target", str(folder / _SITE_FOLDER), spec]
    if uv := which("uv"):
        return [[uv, "pip", *target, "--python", sys.executable]]
    if find_spec("pip") is not None:
        return [[sys.executable, "-m", "pip", "--disable-pip-version-check", *target]]
    # A Python without pip (as uv makes them) still has venv,
    # whose pip installs the package and is removed afterwards.
    venv = folder / _VENV_FOLDER
    return [[sys.executable, "-m", "venv", str(venv)], [str(venv / "bin" / "pip"), *target]]


def _choose_version(package: PackageName) -> str:
    return package.version or ("latest" if package.registry == "npm" else "")


def _find_npm_entry(package: PackageName, folder: Path) -> tuple[str, str]:
    """Return the version and the entry of a package: its folder."""
    entry = f"node_modules/{package.name}"
    try:
        package_json = msgspec.json.decode(
            (folder / entry / "package.json").read_bytes(), type=JSON
        )
    except (OSError, *DECODE_ERRORS) as error:
        raise CodeloopError(
            f"{package.name} can't be used: it has no package.json that can be read."
        ) from error
    return str(package_json.get("version", "")), entry


def _prepare_pypi_entry(package: PackageName, folder: Path) -> tuple[str, str]:
    """Remove pip's venv, and return the version and the entry of a package.

    The entry is the package's folder if that has a manifest, or else `plugin.py`,
    which is written to import it.
    """
    # Removed before the hashes are taken: it is not part of the package.
    remove_tree(folder / _VENV_FOLDER)
    distribution = next(
        (
            each
            for each in distributions(path=[str(folder / _SITE_FOLDER)])
            if _has_name(each, package.name)
        ),
        None,
    )
    if distribution is None:
        raise CodeloopError(
            f"{package.name} can't be used: it was installed, but its description was not found."
        )
    points = [
        each.value.partition(":")[0]
        for each in distribution.entry_points
        if each.group == ENTRY_POINT_GROUP
    ]
    module = points[0] if points else package.name.replace("-", "_")
    path = Path(_SITE_FOLDER, *module.split("."))
    if (folder / path / MANIFEST).is_file():
        return distribution.version, path.as_posix()
    if (
        not points
        and not (folder / path).is_dir()
        and not (folder / path).with_suffix(".py").is_file()
    ):
        raise CodeloopError(
            f"{package.name} is not a plugin: it has no entry point in the group {ENTRY_POINT_GROUP}, "
            f"and no module named {module}."
        )
    (folder / "plugin.py").write_text(
        _SHIM_SOURCE.format(module=module, site=_SITE_FOLDER), encoding="utf-8"
    )
    return distribution.version, "plugin.py"


def _has_name(distribution: Distribution, name: str) -> bool:
    return re.sub(r"[-_.]+", "-", distribution.name).lower() == re.sub(r"[-_.]+", "-", name).lower()
