"""Lists the changes of a project's files since the user trusted it,
with patches to show before it is trusted again.
"""

from pathlib import Path

from codeloop.config.paths import Paths
from codeloop.config.trust.contents import ProjectContents, TooManyFiles, read_contents
from codeloop.config.trust.store import (
    TrustChange,
    TrustedDirectory,
    compare_files,
    find_trust_record,
)
from codeloop.config.trust.trusted_copies import read_copy
from codeloop.kit.text.diff import make_unified_diff
from codeloop.schema.errors import CodeloopError


def list_trust_changes(
    paths: Paths, root: Path, directory: Path, contents: ProjectContents | None = None
) -> tuple[TrustChange, ...]:
    """Return the changed files of a project since it was trusted, with patches;
    none if that is not known.

    `contents`: its present ones, if they are read already. Blocks while it reads the files. Raises
    CodeloopError if there are too many to compare.
    """
    record = find_trust_record(paths, root)
    try:
        if contents is None:
            contents = (
                read_contents(paths, root, directory) if record is not None else ProjectContents()
            )
    except TooManyFiles as error:
        raise CodeloopError(
            f"{error} is more than can be compared with what was trusted."
        ) from error
    if record is None or record.files is None:
        return ()
    return tuple(
        TrustChange(change.path, change.what, _make_patch(paths, record, contents, change.path))
        for change in compare_files(record, contents, root, directory)
    )


def _make_patch(
    paths: Paths, record: TrustedDirectory, contents: ProjectContents, path: str
) -> str:
    digest = (record.files or {}).get(path)
    before = read_copy(paths, digest) if digest is not None else ""
    try:
        after = contents.files.get(path, b"").decode()
    except UnicodeDecodeError:
        return ""
    is_hidden = path in contents.hidden or before is None
    return "" if is_hidden else make_unified_diff(path, before or "", after).patch
