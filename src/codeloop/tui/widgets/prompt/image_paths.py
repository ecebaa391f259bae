"""Finds images that the user names by path: pasted, dropped or typed."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from codeloop.kit.paths import expand_user_path
from codeloop.kit.small_files import read_start
from codeloop.kit.text.patterns import compile_once
from codeloop.schema.limits import CLIENT_FILE
from codeloop.tui.editor.chips import Chip

IMAGE_MIME_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_IMAGE_SUFFIX = rf"\.(?:{'|'.join(suffix[1:] for suffix in IMAGE_MIME_TYPES)})"
_IMAGE_PATH = (
    rf"""(?i)(?<![^\s(])(?P<quote>['"])(?P<quoted>(?:file://|~)?/[^'"\n]+?{_IMAGE_SUFFIX})(?P=quote)"""
    rf"""|(?<![^\s(])(?P<plain>(?:file://|~)?/[^\s'"]+?{_IMAGE_SUFFIX})(?![^\s).,;:!?])"""
)
"""An absolute or `~` path, as a separate word or in quotes."""


def read_image(name: str, show_note: Callable[[str], None]) -> Chip | None:
    """Return the image at an absolute path or `file:` URL;
    None: there is none, or it is too large, with a note.
    """
    path = expand_user_path(unquote(urlsplit(name).path) if name.startswith("file://") else name)
    mime = IMAGE_MIME_TYPES.get(path.suffix.lower())
    if mime is None or not path.is_absolute() or not is_file(path):
        return None
    try:
        # One byte more than is allowed tells that there is more;
        # the rest of a huge file is not read.
        data = read_start(path, CLIENT_FILE.value + 1)
    except OSError:
        return None
    if len(data) > CLIENT_FILE.value:
        show_note(f"{path.name} is larger than {CLIENT_FILE.value >> 20} MB and was not attached.")
        return None
    return make_image_chip(data, mime, path.name)


def make_image_chip(data: bytes, mime: str, name: str) -> Chip:
    """Return an image as a chip."""
    return Chip(
        "[Image]", url=f"data:{mime};base64,{base64.b64encode(data).decode()}", mime=mime, name=name
    )


def find_image_paths(
    text: str, show_note: Callable[[str], None]
) -> Iterator[tuple[int, int, Chip]]:
    """Yield the range of each image's path in a text, and the image."""
    for match in compile_once(_IMAGE_PATH).finditer(text):
        group = "plain" if match["plain"] else "quoted"
        chip = read_image(match[group], show_note)
        if chip is not None:
            yield match.start(group), match.end(group), chip


def is_file(path: Path) -> bool:
    """Return whether a path is a file; False for invalid names."""
    # Any pasted text may be tried: one with a NUL, one that is too long,
    # or the home of an unknown user.
    try:
        return path.is_file()
    except (OSError, ValueError, RuntimeError):
        return False
