"""Which directories a person trusts: only their projects may loosen rules or have anything executed."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.config.files import reason, write_private
from codeloop.config.paths import Paths
from codeloop.kit.small_files import locked, make_private, read_start
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_BYTES, TRUST_LOCK

_DAMAGED = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


class TrustedDirectory(msgspec.Struct, frozen=True):
    """Since when a directory is trusted, in ms since 1970."""

    time: int


class _File(msgspec.Struct, frozen=True):
    directories: dict[str, TrustedDirectory] = {}


class TrustList(Struct, frozen=True):
    """The trusted directories by their resolved path. `warning` says what was wrong with the file, if anything."""

    directories: dict[str, TrustedDirectory]
    warning: str | None = None


def read_trust(paths: Paths) -> TrustList:
    """Read the list. A file that makes no sense is moved aside, so that nothing is trusted by accident."""
    try:
        return TrustList(_directories(paths))
    except (FileNotFoundError, NotADirectoryError):
        return TrustList({})
    except OSError as error:
        return TrustList({}, f"{paths.trust} can't be read ({reason(error)}): no directory is trusted.")
    except _DAMAGED:
        return TrustList({}, _quarantined(paths.trust))


def _directories(paths: Paths) -> dict[str, TrustedDirectory]:
    return msgspec.json.decode(read_start(paths.trust, CONFIG_BYTES.value), type=_File).directories


def is_trusted(paths: Paths, root: Path) -> bool:
    """Return whether a work tree is trusted. Trust holds for exactly this root, not for what is around or below it.

    Nothing is written: a damaged file trusts nothing, and stays until `read_trust` can say so.
    """
    try:
        return str(root.resolve()) in _directories(paths)
    except (OSError, *_DAMAGED):
        return False


def trust(paths: Paths, root: Path) -> None:
    """Trust a work tree until it is taken back. Raises CodeloopError when that can't be stored."""
    with _changing(paths) as directories:
        directories[_resolved(root)] = TrustedDirectory(time=int(time.time() * 1000))


def distrust(paths: Paths, root: Path) -> bool:
    """Take trust back; tell whether there was any. The directory need not exist. Raises CodeloopError."""
    with _changing(paths) as directories:
        return directories.pop(str(root.resolve()), None) is not None


def _resolved(root: Path) -> str:
    resolved = root.resolve()
    if not resolved.is_dir():
        raise CodeloopError(f"{root} is not a directory, so it can't be trusted.")
    try:
        return resolved.as_posix().encode().decode()
    except UnicodeEncodeError as error:
        raise CodeloopError(f"The path {str(root)!a} is not UTF-8, so it can't be stored as trusted.") from error


@contextmanager
def _changing(paths: Paths) -> Generator[dict[str, TrustedDirectory]]:
    """Yield the directories to change, alone among all processes, and store them."""
    try:
        make_private(paths.trust.parent)
        with locked(paths.trust.parent, TRUST_LOCK.seconds):
            directories = dict(read_trust(paths).directories)
            yield directories
            text = msgspec.json.encode(_File(directories=directories))
            write_private(paths.trust, msgspec.json.format(text, indent=2).decode() + "\n")
    except TimeoutError as error:
        where = paths.trust.parent
        raise CodeloopError(f"Another process holds the lock on {where}. Nothing was changed; try again.") from error
    except OSError as error:
        raise CodeloopError(f"{paths.trust} can't be written: {reason(error)}. Nothing was changed.") from error


def _quarantined(file: Path) -> str:
    aside = file.with_name(f"{file.name}.broken-{int(time.time())}")
    try:
        file.replace(aside)
    except OSError as error:
        return f"{file} is damaged and can't be moved aside ({reason(error)}): no directory is trusted."
    return f"{file} was damaged and is now {aside.name}: no directory is trusted until `codeloop trust` says so again."
