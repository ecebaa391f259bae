"""The places that a server names and that the user was asked about: whether it may write there.

They are kept beside the server's own folder, and count as long as its entry names them. What no
person has answered, such as a profile, counts as long as this process runs.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.kit.small_files import create_private_folder, read_start, write_atomically
from codeloop.schema.limits import MCP_FILE
from codeloop.schema.wire import DECODE_ERRORS

# Files that programs only read: settings and keys.
_READ_ONLY = r"(?i)(config|credential|secret|token|\bkeys?\b|\.(ya?ml|toml|ini|env|pem|crt|key|py|js|ts|md)$)"
_held_answers: dict[Path, dict[str, bool]] = {}
"""By a server's own folder: the answers that are not kept."""
_SUFFIX = ".places.json"


def list_open_places(own_folder: Path, places: Iterable[Path]) -> list[Path]:
    """Return those of the named places that the user is to be asked about."""
    answers = read_answers(own_folder)
    return [
        each for each in places if str(each) not in answers and not re.search(_READ_ONLY, each.name)
    ]


def read_answers(own_folder: Path) -> dict[str, bool]:
    """Return by absolute path whether the server with this folder of its own may write there."""
    return _read_kept(own_folder) | _held_answers.get(own_folder, {})


def _read_kept(own_folder: Path) -> dict[str, bool]:
    with suppress(OSError, *DECODE_ERRORS):
        return msgspec.json.decode(
            read_start(_find_file(own_folder), MCP_FILE.value), type=dict[str, bool]
        )
    return {}


def hold_agreement(own_folder: Path, places: Iterable[Path]) -> None:
    """Have a server write at places as long as this process runs."""
    _held_answers.setdefault(own_folder, {}).update(dict.fromkeys(map(str, places), True))


def note_answer(own_folder: Path, places: Iterable[Path], *, is_agreed: bool) -> None:
    """Keep an answer. An error is ignored: the user is asked again."""
    answers = _read_kept(own_folder) | dict.fromkeys(map(str, places), is_agreed)
    with suppress(OSError):
        create_private_folder(own_folder.parent)
        write_atomically(_find_file(own_folder), msgspec.json.encode(answers))


def _find_file(own_folder: Path) -> Path:
    return own_folder.with_name(own_folder.name + _SUFFIX)
