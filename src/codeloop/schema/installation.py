"""Notices that codeloop was updated or removed while it runs.

Modules and data are loaded when they are first needed. Those of another version do not fit what is
loaded already, so from then on nothing more is loaded: what would need it is refused, and the user
is told to restart. What is loaded goes on, so that a turn can be ended and a session be read.
"""

import sys
import time
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from codeloop.kit.small_files import FileState, read_file_state
from codeloop.kit.version import PACKAGE_FOLDER, VERSION, find_git_folder, read_version
from codeloop.schema.errors import CodeloopError

# An installation replaces this file, also one of the same version.
_FIRST_FILE = Path(PACKAGE_FOLDER, "__init__.py")
_GIT_FOLDER = find_git_folder()
# Of a checkout only what git has changed counts: git writes into this file whenever
# another commit is checked out.
_WITNESS = Path(_GIT_FOLDER, "logs", "HEAD") if _GIT_FOLDER else _FIRST_FILE


class InstallationChanged(CodeloopError):
    """Something has to be loaded that is of another version than what runs;
    the message says to restart.
    """


def _read_state() -> FileState:
    return read_file_state(_WITNESS)


# One installation for the whole process: the one whose modules it has loaded.
_STATE_AT_START = _read_state()
_START_NS = time.time_ns()


def find_change(error: BaseException | None = None) -> InstallationChanged | None:
    """Return the error that tells the user of the change of the installation;
    None: it is as it was at the start.

    It is meant for failures, such as `error`: it looks at every module that is loaded, since an
    update may have come to some files only.
    """
    # A module that is not loaded yet may be the first that an update removes.
    is_missing = isinstance(error, ModuleNotFoundError) and _is_ours(error.name or "")
    if _read_state() == _STATE_AT_START and not is_missing and not _has_lost_module():
        return None
    if not _FIRST_FILE.exists():
        return InstallationChanged(
            "codeloop was removed while it ran: install it again, then restart it."
        )
    version = read_version()
    versions = f", from {VERSION} to {version}" if version != VERSION else ""
    return InstallationChanged(f"codeloop was updated while it ran{versions}: restart it.")


def _is_ours(module: str) -> bool:
    return module.startswith(("codeloop.", "codeloop_automation."))


def _has_lost_module() -> bool:
    modules = [module for name, module in sys.modules.items() if _is_ours(name)]
    return any(module.__file__ and not Path(module.__file__).exists() for module in modules)


def check_installation() -> None:
    """Raise InstallationChanged where work would start that is likely to
    load more of the package.
    """
    check_package_file(_FIRST_FILE)


def check_package_file(file: Path) -> Path:
    """Return a file of the package that is read or run now.
    Raises InstallationChanged if it may be of another version.

    In a checkout, files that are older than this process are those that it was started with.
    """
    if _read_state() == _STATE_AT_START:
        return file
    change = find_change()
    if change is None or (_GIT_FOLDER and _is_older_than_start(file)):
        return file
    raise change


def make_python_command(file: Path, *arguments: object) -> tuple[str, ...]:
    """Return the command that runs a file of the package in a Python of its own.
    Raises InstallationChanged.
    """
    return (sys.executable, "-I", str(check_package_file(file)), *map(str, arguments))


def _is_older_than_start(file: Path) -> bool:
    state = read_file_state(file)
    return state is not None and state[1] < _START_NS


class _LateImports:
    """Refuses to import modules of the package that may be of another version.
    It finds none itself.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Return None. Raises InstallationChanged."""
        if not _is_ours(name) or _read_state() == _STATE_AT_START:
            return None
        spec = PathFinder.find_spec(name, path)
        # One that is not there any more is not older than this process either.
        check_package_file(
            Path(spec.origin if spec is not None and spec.origin else "/nonexistent")
        )
        return None


def watch_late_imports() -> None:
    """From now on, let no module of another version be imported."""
    if not any(isinstance(finder, _LateImports) for finder in sys.meta_path):
        sys.meta_path.insert(0, _LateImports())
