"""Stores the directories that the user trusts: only their projects may loosen
rules or have code executed; and says whether a project is trusted.
"""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from codeloop.config.files import describe_os_error, write_private
from codeloop.config.paths import Paths
from codeloop.config.trust.contents import (
    ProjectContents,
    TooManyFiles,
    encode_path,
    is_read_for,
    read_contents,
)
from codeloop.kit.small_files import create_private_folder, lock, read_bounded
from codeloop.kit.text.undecodable import escape_undecodable
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import TRUST_LIST_BYTES, TRUST_LOCK
from codeloop.schema.wire import DECODE_ERRORS


class TrustedDirectory(msgspec.Struct, frozen=True):
    """When a directory was trusted (ms since the epoch), and the digests of its files at that time,
    by path.

    `files` is None if it was trusted by a version that did not record digests.
    """

    time: int
    files: dict[str, str] | None = None


class _TrustFile(msgspec.Struct, frozen=True):
    directories: dict[str, TrustedDirectory] = {}


class TrustList(Struct, frozen=True):
    """The trusted directories by their resolved path. `warning`: why the list could not be read."""

    directories: dict[str, TrustedDirectory]
    warning: str | None = None


def read_trust(paths: Paths) -> TrustList:
    """Read the list of trusted directories. A damaged file is renamed, and nothing is trusted."""
    try:
        return TrustList(_read_directories(paths))
    except (FileNotFoundError, NotADirectoryError):
        return TrustList({})
    except OSError as error:
        return TrustList(
            {},
            f"{paths.trust_file} can't be read ({describe_os_error(error)}): no directory is trusted.",
        )
    except DECODE_ERRORS:
        return TrustList({}, _quarantine(paths.trust_file))


def _read_directories(paths: Paths) -> dict[str, TrustedDirectory]:
    return msgspec.json.decode(
        read_bounded(paths.trust_file, TRUST_LIST_BYTES.value), type=_TrustFile
    ).directories


def find_trust_record(paths: Paths, root: Path) -> TrustedDirectory | None:
    """Return the trust record of a work tree, which holds for this root only,
    not for folders around it or below.

    None: it is not trusted, or the file is damaged, which `read_trust` reports.
    """
    try:
        return _read_directories(paths).get(str(root.resolve()))
    except (OSError, *DECODE_ERRORS):
        return None


def trust_directory(
    paths: Paths, root: Path, directory: Path | None = None, shown: ProjectContents | None = None
) -> None:
    """Trust a work tree with the present contents of its files.

    `directory`: the folder in it from which configuration is read;
    the records of other folders stay as they are.
    `shown`: what the user was shown, which alone is trusted. Raises CodeloopError when the trust
    can't be stored, there are too many files, or they have changed since they were shown.
    """
    top = _resolve_root(root)
    contents = read_present_contents(paths, top, directory)
    if shown is not None and shown.compute_digests() != contents.compute_digests():
        raise CodeloopError(
            f"The files of {top} changed while you were asked, so nothing was trusted. Look at them: codeloop trust"
        )
    with _edit_directories(paths) as directories:
        old = directories.get(str(top))
        other_files = {
            path: digest
            for path, digest in ((old and old.files) or {}).items()
            if not is_read_for(path, top, directory or top)
        }
        _keep_copies(paths, contents)
        now = int(time.time() * 1000)
        directories[str(top)] = TrustedDirectory(
            time=now, files={**other_files, **contents.compute_digests()}
        )


def adopt_contents(paths: Paths, root: Path, directory: Path) -> None:
    """Record the contents of a work tree that was trusted by a version that did not record them.

    Raises as `trust_directory` does.
    """
    path = _resolve_root(root)
    contents = read_present_contents(paths, path, directory)
    with _edit_directories(paths) as directories:
        old = directories.get(str(path))
        if old is not None and old.files is None:
            _keep_copies(paths, contents)
            directories[str(path)] = TrustedDirectory(
                time=old.time, files=contents.compute_digests()
            )


def trust_changed_file(paths: Paths, root: Path, directory: Path, file: Path) -> None:
    """Trust the change that the user has just made to one file of a trusted work tree,
    and the texts that it names.

    The programs that it names stay untrusted if they are new or have changed: `codeloop trust`
    shows them first. Raises CodeloopError.
    """
    top = _resolve_root(root)
    contents = read_present_contents(paths, top, directory)
    key = encode_path(top, file)
    digests = contents.compute_digests()
    try:
        with _edit_directories(paths) as directories:
            old = directories.get(str(top))
            if old is not None and old.files is not None:
                _keep_copies(paths, contents)
                changed = {
                    path: digests[path]
                    for path in (key, *contents.named_texts.get(key, ()))
                    if path in digests
                }
                directories[str(top)] = TrustedDirectory(
                    time=old.time, files={**old.files, **changed}
                )
    except CodeloopError as error:
        raise CodeloopError(
            f"{file} is written, but the change is not trusted: {error} Trust it: codeloop trust"
        ) from error


def read_present_contents(paths: Paths, root: Path, directory: Path | None) -> ProjectContents:
    """Return the contents of a work tree that trust would be for.
    Raises CodeloopError if there are too many files.
    """
    try:
        return read_contents(paths, root, root if directory is None else directory)
    except TooManyFiles as error:
        raise CodeloopError(
            f"{error} is more than can be compared later, so {root} can't be trusted for good. "
            "Make its folders of agents, commands, skills, plugins and tools smaller, or use --trust each time."
        ) from error


def distrust_directory(paths: Paths, root: Path) -> bool:
    """Stop trusting a work tree, which need not exist any more; return whether it was trusted.
    Raises CodeloopError.
    """
    with _edit_directories(paths) as directories:
        return directories.pop(str(root.resolve()), None) is not None


def _keep_copies(paths: Paths, contents: ProjectContents) -> None:
    # Imported late: most runs trust nothing new.
    from codeloop.config.trust.trusted_copies import store_copies

    store_copies(paths, contents)


def _resolve_root(root: Path) -> Path:
    path = root.resolve()
    if not path.is_dir():
        raise CodeloopError(f"{root} is not a directory, so it can't be trusted.")
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise CodeloopError(
            f"The name of {escape_undecodable(str(root))} is not UTF-8, so it can't be stored as trusted. Rename the "
            "folder, or trust it for one run: --trust"
        ) from error
    return path


@contextmanager
def _edit_directories(paths: Paths) -> Generator[dict[str, TrustedDirectory]]:
    """Yield the directories to change, under a lock that excludes other processes,
    and store them.
    """
    try:
        create_private_folder(paths.trust_file.parent)
        with lock(paths.trust_file.parent, TRUST_LOCK.seconds):
            # Read under the lock, since another process may have changed the list.
            trust_list = read_trust(paths)
            # A list that is there and can't be read must not be replaced by one
            # without its directories.
            if trust_list.warning is not None and os.path.lexists(paths.trust_file):
                raise CodeloopError(f"{trust_list.warning} Trust was not changed.")
            directories = dict(trust_list.directories)
            yield directories
            data = msgspec.json.format(
                msgspec.json.encode(_TrustFile(directories=directories)), indent=2
            )
            if len(data) >= TRUST_LIST_BYTES.value:
                raise CodeloopError(
                    f"{paths.trust_file} would have {len(data):,} bytes, and at most {TRUST_LIST_BYTES.value:,} are "
                    "read of it. Trust was not changed; remove a directory: codeloop trust --remove DIRECTORY"
                )
            write_private(paths.trust_file, data.decode() + "\n")
            # Imported late: most runs trust nothing new.
            from codeloop.config.trust.trusted_copies import remove_unused_copies

            used_digests = {
                digest for each in directories.values() for digest in (each.files or {}).values()
            }
            remove_unused_copies(paths, used_digests)
    except TimeoutError as error:
        where = paths.trust_file.parent
        raise CodeloopError(
            f"Another process holds the lock on {where}. Trust was not changed; try again."
        ) from error
    except OSError as error:
        raise CodeloopError(
            f"{paths.trust_file} can't be written: {describe_os_error(error)}. Trust was not changed."
        ) from error


def _quarantine(file: Path) -> str:
    # Kept under another name, so that the user can repair it.
    path = file.with_name(f"{file.name}.broken-{int(time.time())}")
    try:
        file.replace(path)
    except OSError as error:
        return f"{file} is damaged and can't be renamed ({describe_os_error(error)}): no directory is trusted."
    return f"{file} was damaged and is now {path.name}: no directory is trusted until `codeloop trust` says so again."


# Changed files that a warning lists by name.
_MAX_LISTED_NAMES = 5


class TrustChange(Struct, frozen=True):
    """The difference of a file from its trusted content.

    `patch`: empty if it can't be shown, and always from `compare_files`; `changes.py` makes it.
    """

    path: str
    what: Literal["added", "changed", "removed"]
    patch: str = ""


class TrustState(Struct, frozen=True):
    """Whether a project is trusted. `reason`: why it is no longer trusted;
    `note`: a line to show once.

    `files`: the files whose contents were compared.
    """

    is_trusted: bool
    reason: str | None = None
    note: str | None = None
    files: tuple[Path, ...] = ()


def find_trust_state(paths: Paths, root: Path, directory: Path) -> TrustState:
    """Return whether a project is trusted. Both paths are resolved.
    Blocks while it reads the files.

    A project that was trusted by a version that did not record contents is recorded as it is now,
    once.
    """
    record = find_trust_record(paths, root)
    if record is None:
        return TrustState(is_trusted=False)
    try:
        contents = read_contents(paths, root, directory)
    except TooManyFiles as error:
        return TrustState(
            is_trusted=False,
            reason=f"{_format_path(str(error))} is more than can be compared with what was trusted",
        )
    files = tuple(root / path for path in (*contents.files, *contents.hidden))
    if record.files is None:
        return TrustState(is_trusted=True, note=_adopt(paths, root, directory), files=files)
    changes = compare_files(record, contents, root, directory)
    if not changes:
        return TrustState(is_trusted=True, files=files)
    texts = [f"{_format_path(change.path)} {change.what}" for change in changes]
    listed = ", ".join(texts[:_MAX_LISTED_NAMES])
    if len(texts) > _MAX_LISTED_NAMES:
        listed += f", {len(texts) - _MAX_LISTED_NAMES} more"
    reason = f"{_format_path(str(root))} was trusted, but has changed since ({listed})"
    return TrustState(is_trusted=False, reason=reason, files=files)


def compare_files(
    record: TrustedDirectory, contents: ProjectContents, root: Path, directory: Path
) -> list[TrustChange]:
    """Return the files that differ from a record, sorted by path, without patches."""
    before, now = record.files or {}, contents.compute_digests()
    missing = [path for path in before if path not in now and is_read_for(path, root, directory)]
    changes = [TrustChange(path, "removed") for path in missing]
    changes += [
        TrustChange(path, "changed" if path in before else "added")
        for path, digest in now.items()
        if before.get(path) != digest
    ]
    return sorted(changes, key=lambda change: change.path)


def _adopt(paths: Paths, root: Path, directory: Path) -> str:
    """Record the present contents of a project that was trusted without them;
    return a note for the user.
    """
    where = _format_path(str(root))
    try:
        adopt_contents(paths, root, directory)
    except CodeloopError as error:
        return f"{where} is trusted, but not what it holds, since that can't be kept: {error}"
    return f"{where} was trusted before files were compared: it is taken as it is now, later changes are asked about."


def _format_path(path: str) -> str:
    return path if path.isprintable() else ascii(path)
