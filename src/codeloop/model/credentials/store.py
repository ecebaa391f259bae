"""Reads and writes the credentials file (mode 0600): a key or sign-in by provider,
each key bound to an origin.

The file is `{provider: {"type": "api", "key": ..., "origin": ...}}`. Entries without an origin (as
the reference writes them) belong to the provider's origin in the catalog. Entries of the type
`oauth` are sign-ins, by a plugin or a device code. Entries of the type `keyring` say that the key
is in the system's keyring, and for which origin. Entries of other types are kept as they are.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.kit.small_files import create_private_folder, lock, write_atomically
from codeloop.model.base_url import parse_origin
from codeloop.model.errors import ModelUnavailable, WrongKeyOrigin
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CREDENTIALS_BYTES, CREDENTIALS_LOCK, KEY_LENGTH
from codeloop.schema.wire import DECODE_ERRORS, JSON


class ApiKey(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="api"):
    """An entry whose key is in the file. `origin` is `scheme://host[:port]`;
    empty: the provider's in the catalog.
    """

    key: str
    origin: str = ""

    def __repr__(self) -> str:
        """Return the entry without its key."""
        return f"ApiKey(key={mask_key(self.key)!r}, origin={self.origin!r})"


class KeyringKey(msgspec.Struct, frozen=True, tag_field="type", tag="keyring"):
    """An entry whose key is in the keyring of the system."""

    origin: str


StoredKey = ApiKey | KeyringKey


def is_valid_key(text: str) -> bool:
    """Return whether a text can be a key: one word of printable ASCII characters,
    of bounded length.
    """
    # A key goes into a header: line breaks or other characters would break the request,
    # or change it.
    return (
        0 < len(text) <= KEY_LENGTH.value
        and text.isascii()
        and text.isprintable()
        and " " not in text
    )


def mask_key(key: str) -> str:
    """Return a key's first and last characters, `sk-…abcd`, for display;
    of a short key only `…`.
    """
    return f"{key[:3]}…{key[-4:]}" if len(key) >= 16 else "…"


class Credentials:
    """The keys of one file, which is read at each call,
    and those in the system's keyring that the file names.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._keyring_keys: set[str] = set()
        """The keys that this process has read from the keyring."""

    def read_entries(self) -> dict[str, StoredKey]:
        """Return the entries of keys by provider, without sign-ins and unknown types;
        the keyring is not asked.

        Raises `ModelUnavailable` when the file can't be read or is broken.
        """
        stored_keys: dict[str, StoredKey] = {}
        for provider, raw in self._read_file().items():
            with suppress(msgspec.ValidationError):
                stored_keys[provider] = msgspec.json.decode(raw, type=StoredKey)
        return stored_keys

    def list_secrets(self) -> set[str]:
        """Return the keys of the file, and those that this process has read from the keyring.

        Raises as `read_entries`.
        """
        return self._keyring_keys | {
            entry.key for entry in self.read_entries().values() if isinstance(entry, ApiKey)
        }

    def remember_key(self, key: str) -> None:
        """Add a key that was read from the keyring to those of `list_secrets`."""
        self._keyring_keys.add(key)

    def find_key(
        self, provider: str, url: str, service_urls: Sequence[str] = ()
    ) -> str | KeyringKey | None:
        """Return the provider's key for requests to `url`, or its entry if the keyring has it;
        None if none is stored.

        `service_urls` are the provider's base URLs in the catalog, its own first: a key for one of
        them is for all of them, and an entry without an origin is for the first.
        Raises `WrongKeyOrigin` when the key is stored for another origin,
        `ModelUnavailable` when the file is broken.
        """
        entry = self.read_entries().get(provider)
        if entry is None:
            return None
        wanted_origin = parse_origin(url)
        service_origins = [parse_origin(service_url) for service_url in service_urls]
        bound_origin = entry.origin or (service_origins[0] if service_origins else "")
        if bound_origin != wanted_origin and not {bound_origin, wanted_origin} <= set(
            service_origins
        ):
            raise WrongKeyOrigin(
                f"The stored key of `{provider}` is for {bound_origin or 'no known address'}, "
                f"and is not sent to {wanted_origin}.\n"
                f"If you trust {wanted_origin}, run `codeloop auth login {provider} --base-url {url}`; "
                f"else correct the provider's `baseURL`."
            )
        return entry.key if isinstance(entry, ApiKey) else entry

    def store_key(
        self, provider: str, key: str, url: str, *, in_keyring: bool | None = None
    ) -> StoredKey:
        """Store a key for the origin of `url` in place of the provider's old one.

        `in_keyring`: in the keyring of the system, or in the file; None: where the old one is.
        Raises `CodeloopError` when the file is broken or can't be written;
        then it keeps its old bytes.
        `ModelUnavailable`: the keyring can't be used.
        """
        key_origin = parse_origin(url)
        before = self.read_entries().get(provider)
        if in_keyring or (in_keyring is None and isinstance(before, KeyringKey)):
            from codeloop.model.credentials.system_keyring import store_key

            store_key(provider, key_origin, key)
            self.remember_key(key)
            entry = KeyringKey(key_origin)
        else:
            entry = ApiKey(key=key, origin=key_origin)
        if before != entry:
            # An unusable keyring must not prevent storing a key elsewhere.
            with suppress(ModelUnavailable):
                self._clear_keyring(provider)
        self._change_file(
            lambda entries: {**entries, provider: msgspec.Raw(msgspec.json.encode(entry))}
        )
        return entry

    def find_sign_in(self, provider: str) -> JSON | None:
        """Return the stored sign-in at a provider, by a plugin or a device code;
        None: there is none.

        Raises as `read_entries`.
        """
        raw = self._read_file().get(provider)
        with suppress(msgspec.MsgspecError):
            entry = None if raw is None else msgspec.json.decode(raw, type=JSON)
            return entry if entry is not None and entry.get("type") == "oauth" else None
        return None

    def store_sign_in(self, provider: str, entry: JSON) -> None:
        """Store a sign-in, by a plugin or a device code, in place of the provider's old entry.

        Raises as `store_key`.
        """
        before = self.find_sign_in(provider) or {}
        # Only the plugin that made a sign-in can renew it, so its name is kept.
        plugin = {"plugin": before["plugin"]} if "plugin" in before else {}
        with suppress(ModelUnavailable):
            self._clear_keyring(provider)
        raw = msgspec.Raw(msgspec.json.encode({**plugin, **entry, "type": "oauth"}))
        self._change_file(lambda entries: {**entries, provider: raw})

    def remove_entry(self, provider: str) -> bool:
        """Remove the provider's entry, its key in the keyring too; return whether it existed.

        Raises as `store_key`.
        """
        if provider not in self._read_file():
            return False
        self._clear_keyring(provider)
        self._change_file(
            lambda entries: {name: raw for name, raw in entries.items() if name != provider}
        )
        return True

    def read_stamp(self) -> tuple[int, ...]:
        """Return a value that changes whenever the file does, without reading it;
        empty if there is none.
        """
        try:
            status = self.path.stat()
        except OSError:
            return ()
        return status.st_ino, status.st_mtime_ns, status.st_size

    def is_open_to_others(self) -> bool:
        """Return whether other users of the machine may read or write the file."""
        try:
            return bool(self.path.stat().st_mode & 0o077)
        except OSError:
            return False

    def _clear_keyring(self, provider: str) -> None:
        """Remove a provider's key from the keyring if it is there.
        Raises `ModelUnavailable`: it can't be used.
        """
        entry = self.read_entries().get(provider)
        if isinstance(entry, KeyringKey):
            from codeloop.model.credentials.system_keyring import remove_key

            remove_key(provider, entry.origin)

    def _read_file(self) -> dict[str, msgspec.Raw]:
        try:
            with self.path.open("rb") as file:
                data = file.read(CREDENTIALS_BYTES.value + 1)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise ModelUnavailable(
                f"The credentials {self.path} can't be read: {error.strerror}."
            ) from error
        try:
            if len(data) > CREDENTIALS_BYTES.value:
                raise msgspec.DecodeError(f"it is longer than {CREDENTIALS_BYTES.value} bytes")
            # As text: the decoder would pass over bytes in an entry that are not UTF-8.
            return msgspec.json.decode(data.decode(), type=dict[str, msgspec.Raw])
        except DECODE_ERRORS as error:
            raise ModelUnavailable(
                f"The credentials {self.path} are broken ({error}); they are left as they are.\n"
                "Correct the file, or move it away and run `codeloop auth login`."
            ) from error

    def _change_file(
        self, edit: Callable[[dict[str, msgspec.Raw]], dict[str, msgspec.Raw]]
    ) -> None:
        # The file may be a link, for example into a folder of dotfiles: the link stays.
        target = Path(os.path.realpath(self.path))
        lock_file = target.with_name(target.name + ".lock")
        try:
            create_private_folder(target.parent)
            with lock(lock_file, CREDENTIALS_LOCK.seconds):
                entries = edit(self._read_file())
                data = msgspec.json.format(msgspec.json.encode(entries), indent=2) + b"\n"
                write_atomically(target, data, sync=True)
        except TimeoutError as error:
            message = (
                f"Another process is changing the credentials (it holds {lock_file}). Try again."
            )
            raise CodeloopError(message) from error
        except OSError as error:
            raise CodeloopError(
                f"The credentials {target} can't be written: {error.strerror}. Nothing was changed."
            ) from error
