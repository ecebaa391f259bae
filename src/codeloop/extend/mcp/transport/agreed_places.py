"""The places that a server names and that the user was asked about: whether it may write there.

They are kept beside the server's own folder, and count as long as its entry names them.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.kit.small_files import create_private_folder, read_start, write_atomically
from codeloop.schema.limits import MCP_FILE
from codeloop.schema.wire import DECODE_ERRORS

# Files that programs only read: settings and keys.
_READ_ONLY = r"(?i)(config|credential|secret|token|\bkeys?\b|\.(ya?ml|toml|ini|env|pem|crt|key|py|js|ts|md)$)"
_SUFFIX = ".places.json"


class AskedPlaces(Struct, frozen=True):
    """What the user has answered: absolute paths where the server may write (`agreed`),
    and where it may not (`refused`).
    """

    agreed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    def list_open(self, places: Sequence[Path]) -> list[Path]:
        """Return those of the named places that are to be asked about."""
        return [
            each
            for each in places
            if str(each) not in {*self.agreed, *self.refused}
            and not re.search(_READ_ONLY, each.name)
        ]


def read_asked_places(own_folder: Path) -> AskedPlaces:
    """Return what the user has answered about the server with this folder of its own."""
    with suppress(OSError, *DECODE_ERRORS):
        return msgspec.json.decode(
            read_start(_find_file(own_folder), MCP_FILE.value), type=AskedPlaces
        )
    return AskedPlaces()


def note_asked_places(own_folder: Path, places: Sequence[Path], *, is_agreed: bool) -> None:
    """Keep an answer. An error is ignored: the user is asked again."""
    before = read_asked_places(own_folder)
    names = tuple(map(str, places))
    asked = (
        AskedPlaces((*before.agreed, *names), before.refused)
        if is_agreed
        else AskedPlaces(before.agreed, (*before.refused, *names))
    )
    with suppress(OSError):
        create_private_folder(own_folder.parent)
        write_atomically(_find_file(own_folder), msgspec.json.encode(asked))


def _find_file(own_folder: Path) -> Path:
    return own_folder.with_name(own_folder.name + _SUFFIX)
