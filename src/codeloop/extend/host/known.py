"""What extensions offer, as they said last: remembered on disk, so that requests name tools that nobody loaded."""

from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.extend.host.protocol import ExtensionOffer
from codeloop.kit.small_files import make_private, read_start, write_atomically
from codeloop.schema.bounds.extension import HOST_FILE


class KnownOffers:
    """A file for each extension, by its digest. What can't be read counts as unknown."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, digest: str) -> ExtensionOffer | None:
        """Return what an extension of this content offered."""
        with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
            return msgspec.json.decode(read_start(self._file(digest), HOST_FILE.value), type=ExtensionOffer)
        return None

    def put(self, digest: str, offer: ExtensionOffer) -> None:
        """Remember an offer; where the disk does not take it, the extension is loaded again next time."""
        with suppress(OSError):
            make_private(self._folder)
            write_atomically(self._file(digest), msgspec.json.encode(offer))

    def _file(self, digest: str) -> Path:
        return self._folder / f"{digest}.json"
