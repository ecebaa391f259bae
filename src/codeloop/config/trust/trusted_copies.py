"""Stores copies of trusted files, named by their SHA-256,
so that later changes of the files can be shown.
"""

from contextlib import suppress
from pathlib import Path

from codeloop.config.files import write_private
from codeloop.config.paths import Paths
from codeloop.config.trust.contents import ProjectContents
from codeloop.kit.small_files import read_start
from codeloop.schema.limits import CONFIG_BYTES


def store_copies(paths: Paths, contents: ProjectContents) -> None:
    """Store copies of the text files among `contents.files`; those in `hidden` are not copied.
    Raises OSError.
    """
    digests = contents.compute_digests()
    for path, data in contents.files.items():
        copy = _get_folder(paths) / digests[path]
        # A binary file can't be shown as a diff.
        with suppress(UnicodeDecodeError):
            text = data.decode()
            if not copy.exists():
                write_private(copy, text)


def read_copy(paths: Paths, digest: str) -> str | None:
    """Return the stored copy of a file by its digest;
    None: there is no copy, or it does not have that digest.
    """
    from hashlib import sha256

    try:
        data = read_start(_get_folder(paths) / digest, CONFIG_BYTES.value)
        return data.decode() if sha256(data).hexdigest() == digest else None
    except (OSError, UnicodeDecodeError):
        return None


def remove_unused_copies(paths: Paths, used_digests: set[str]) -> None:
    """Remove the copies of all files but those with `used_digests`,
    which trusted directories have.
    """
    with suppress(OSError):
        for copy in _get_folder(paths).iterdir():
            if copy.name not in used_digests:
                copy.unlink()


def _get_folder(paths: Paths) -> Path:
    return paths.trust_file.with_name("trusted")
