"""What extensions offer, as they said last: remembered on disk, so that requests name tools that nobody loaded.

Which hooks are a policy is remembered by the path, too: what changed so that it can't be loaded still decides.
"""

from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.extend.host.protocol import ExtensionOffer
from codeloop.kit.small_files import make_private, read_start, write_atomically
from codeloop.schema.bounds.extension import HOST_FILE


class KeptPolicy(Struct, frozen=True):
    """The hooks of an extension at which nothing happens without it, by its path."""

    path: str
    hooks: tuple[str, ...]


class KnownOffers:
    """A file for each extension, by its digest. What can't be read counts as unknown."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._policies: dict[str, tuple[str, ...]] = {}
        """Those that were remembered by this object, by path."""

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

    def policy(self, path: str) -> tuple[str, ...]:
        """Return what `kept_policy` does."""
        return kept_policy(self._folder, path)

    def keep_policy(self, path: str, hooks: tuple[str, ...]) -> None:
        """Remember at which hooks nothing happens without the extension at a path; none: forget it."""
        if self._policies.get(path) == hooks:  # asked with each call of a hook
            return
        self._policies[path] = hooks
        file, kept = _policy_file(self._folder, path), KeptPolicy(path, hooks)
        with suppress(OSError):
            if hooks and _read_policy(file) != kept:
                make_private(file.parent)
                write_atomically(file, msgspec.json.encode(kept))
            elif not hooks:
                file.unlink(missing_ok=True)


def known_sign_ins(folder: Path, digests: Sequence[str]) -> frozenset[str]:
    """Return the providers whose requests extensions of these contents see to, for who signed in with them."""
    offers = filter(None, map(KnownOffers(folder).get, digests))
    signing = [offer.auth for offer in offers if offer.auth is not None and offer.auth.get("loader") is True]
    return frozenset(str(auth.get("provider")) for auth in signing)


def kept_policy(folder: Path, path: str) -> tuple[str, ...]:
    """Return the hooks at which nothing happens without the extension at a path, or without one below it."""
    hooks: set[str] = set()
    if (own := _read_policy(_policy_file(folder, path))) is not None:
        return own.hooks
    for file in (folder / "policy").glob("*.json"):
        kept = _read_policy(file)
        if kept is not None and Path(kept.path).is_relative_to(path):
            hooks.update(kept.hooks)
    return tuple(sorted(hooks))


def _policy_file(folder: Path, path: str) -> Path:
    return folder / "policy" / f"{sha256(path.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}.json"


def _read_policy(file: Path) -> KeptPolicy | None:
    with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode(read_start(file, HOST_FILE.value), type=KeptPolicy)
    return None
