"""Decides whether a project is trusted: the user has trusted it,
and its files have not changed since.
"""

from pathlib import Path
from typing import Literal

from msgspec import Struct

from codeloop.config.paths import Paths
from codeloop.config.trust.contents import ProjectContents, TooManyFiles, is_read_for, read_contents
from codeloop.config.trust.store import TrustedDirectory, adopt_contents, find_trust_record
from codeloop.schema.errors import CodeloopError

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
