"""Which definitions of servers were used before: one that has changed is asked about again."""

from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.extend.mcp.known.definition import ServerDefinition
from codeloop.kit.diff import unified
from codeloop.kit.small_files import locked, make_private, read_start, write_atomically
from codeloop.schema.limits import MCP_FILE, TRUST_LOCK
from codeloop.schema.wire import Wire

_KNOWN = 20
"""Definitions of one name that are remembered; older ones ask again."""


class KnownDefinition(Wire):
    """A definition that was used: its hash, and its text for a later comparison.

    `code`: how the files of the project lay on the disk that it may load outside of a sandbox; "" for none.
    """

    digest: str
    text: str
    code: str = ""


class Approvals:
    """The file of definitions that a person has agreed to, by name and by the project that brought them."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def change(self, definition: ServerDefinition) -> str:
        """Return the patch from the latest known definition of this name; "" when it is known, or the name is new."""
        known = self._read().get(_key(definition), [])
        if not known or any(each.digest == definition.digest for each in known):
            return ""
        return unified(definition.name, known[-1].text, definition.text).patch or "(the secret of its sign-in)"

    def has_code(self, definition: ServerDefinition, code: str) -> bool:
        """Return whether a definition was used with these files of the project."""
        known = self._read().get(_key(definition), [])
        return any(each.digest == definition.digest and each.code == code for each in known)

    def agree(self, definition: ServerDefinition, code: str = "") -> None:
        """Remember a definition, with the files that it loads. Where that can't be written, it is asked about again."""
        known = self._read().get(_key(definition), [])
        if known and known[-1].digest == definition.digest and known[-1].code == code:
            return
        with suppress(OSError, TimeoutError):
            make_private(self._file.parent)
            with locked(self._file.with_name(self._file.name + ".lock"), TRUST_LOCK.seconds):
                every = self._read()
                rest = [each for each in every.get(_key(definition), []) if each.digest != definition.digest]
                now = KnownDefinition(digest=definition.digest, text=definition.text, code=code)
                every[_key(definition)] = [*rest, now][-_KNOWN:]
                write_atomically(self._file, msgspec.json.encode(every))

    def _read(self) -> dict[str, list[KnownDefinition]]:
        with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
            return msgspec.json.decode(read_start(self._file, MCP_FILE.value), type=dict[str, list[KnownDefinition]])
        return {}


def _key(definition: ServerDefinition) -> str:
    return f"{definition.scope}\n{definition.name}" if definition.scope else definition.name
