"""The cache of extensions' offers on disk, so that requests can name tools before a host runs.

A cached offer is valid for the same code and options, the same project, environment and settings
files. An empty offer is never stored, since the files that the extension looked for may exist next
time. Policy hooks are stored by the extension's path: a policy that was changed so that it
can't be loaded still decides.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.config.paths import Paths
from codeloop.config.project_root import ProjectRoot
from codeloop.extend.homes import find_homes
from codeloop.extend.host.protocol import ExtensionOffer
from codeloop.kit.small_files import create_private_folder, read_start, write_atomically
from codeloop.schema.bounds.extension import HOST_FILE
from codeloop.schema.wire import DECODE_ERRORS
from codeloop.workspace.process.program_environment import make_program_environment

_SETTINGS_SUFFIXES = frozenset(
    (".json", ".jsonc", ".json5", ".yaml", ".yml", ".toml", ".ini", ".conf", ".cfg", ".env")
)
# Variables of the terminal or login: they differ from window to window,
# and do not affect extensions.
_IGNORED_VARIABLES = frozenset(
    ("TERM", "COLORTERM", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS")
)
# systemd sets these anew with every login.
_LOGIN_PREFIX = "XDG_SESSION_"


class StoredPolicy(Struct, frozen=True):
    """The policy hooks of an extension, by its path. `digest`: of the extension that had them."""

    path: str
    hooks: tuple[str, ...]
    digest: str = ""


def hash_surroundings(
    project_root: ProjectRoot, paths: Paths, environment: Mapping[str, str]
) -> str:
    """Return a digest of what influences an extension's offer besides its code and options.

    That is the project, the variables that a host sees, and the settings files (name, size, time)
    in the project's folders and the folders of agents and plugins,
    where extensions look for files of their own.
    """
    visible_variables = make_program_environment(environment, {})
    variables = sorted(
        (name, value)
        for name, value in visible_variables.items()
        if name not in _IGNORED_VARIABLES and not name.startswith(_LOGIN_PREFIX)
    )
    folders = (
        project_root.root,
        project_root.directory,
        *(home.path for home in find_homes(project_root, paths)),
    )
    files = [file for folder in dict.fromkeys(folders) for file in _list_settings_files(folder)]
    project = (str(project_root.root), str(project_root.directory))
    return sha256(repr((project, variables, files)).encode("utf-8", "surrogateescape")).hexdigest()


def _list_settings_files(folder: Path) -> list[tuple[str, int, int]]:
    """Return the path, size and time (ns) of each settings file in a folder, sorted."""
    settings: list[tuple[str, int, int]] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if (
                Path(entry.name).suffix in _SETTINGS_SUFFIXES
                or entry.name.startswith(".")
                or ".config." in entry.name
            ):
                with suppress(OSError):
                    if entry.is_file():
                        state = entry.stat()
                        settings.append((ascii(entry.path), state.st_size, state.st_mtime_ns))
    return sorted(settings)


def is_empty_offer(offer: ExtensionOffer) -> bool:
    """Return whether an offer is empty."""
    return not (offer.tools or offer.hooks or offer.auth or offer.provider)


class OfferCache:
    """The offers by extension and surroundings, a file each.

    `digest_surroundings` returns the current digest of the surroundings; `str`, which returns "":
    they don't matter. A file that can't be read counts as missing.
    """

    def __init__(self, folder: Path, digest_surroundings: Callable[[], str] = str) -> None:
        self._folder = folder
        self._digest_surroundings = digest_surroundings
        self._surroundings = digest_surroundings()
        self._policies: dict[str, StoredPolicy] = {}
        """The policies stored by this object, by path."""

    def refresh(self) -> bool:
        """Look at the surroundings again; return whether they have changed since the last time."""
        before, self._surroundings = self._surroundings, self._digest_surroundings()
        return self._surroundings != before

    def get(self, digest: str) -> ExtensionOffer | None:
        """Return the cached offer of an extension with this content; None: it must be loaded."""
        with suppress(OSError, *DECODE_ERRORS):
            offer = msgspec.json.decode(
                read_start(self._file(digest), HOST_FILE.value), type=ExtensionOffer
            )
            return None if is_empty_offer(offer) else offer
        return None

    def put(self, digest: str, offer: ExtensionOffer) -> None:
        """Cache an offer; if writing fails, the extension is loaded again next time."""
        with suppress(OSError):
            if is_empty_offer(offer):
                self._file(digest).unlink(missing_ok=True)
                return
            create_private_folder(self._folder)
            write_atomically(self._file(digest), msgspec.json.encode(offer))

    def _file(self, digest: str) -> Path:
        name = sha256(f"{digest} {self._surroundings}".encode()).hexdigest()[:32]
        return self._folder / f"{name}.json"

    def get_policy(self, path: str) -> tuple[str, ...]:
        """Return the result of `find_policy_hooks` for this folder."""
        return find_policy_hooks(self._folder, path)

    def store_policy(self, path: str, hooks: tuple[str, ...], digest: str = "") -> None:
        """Store the policy hooks of the extension at a path.

        If there are none, those that are stored are removed, unless the same extension had them in
        another project or with other settings.
        """
        stored_policy = StoredPolicy(path, hooks, digest)
        # Called with each load of an extension; the disk is read only when something is new.
        if self._policies.get(path) == stored_policy:
            return
        self._policies[path] = stored_policy
        file = _get_policy_path(self._folder, path)
        with suppress(OSError):
            before = _read_policy(file)
            if hooks and before != stored_policy:
                create_private_folder(file.parent)
                write_atomically(file, msgspec.json.encode(stored_policy))
            # The same file without a policy here may be a policy in another project,
            # by its options there.
            elif not hooks and not (
                before is not None and before.digest and before.digest == digest
            ):
                file.unlink(missing_ok=True)


def find_sign_in_providers(
    folder: Path, digest_surroundings: Callable[[], str], digests: Sequence[str]
) -> frozenset[str]:
    """Return the providers whose requests these extensions handle after sign-in.
    `digests`: of the extensions.
    """
    cache = OfferCache(folder, digest_surroundings)
    offers = [offer for digest in digests if (offer := cache.get(digest)) is not None]
    sign_ins = [
        offer.auth
        for offer in offers
        if offer.auth is not None and offer.auth.get("loader") is True
    ]
    return frozenset(str(sign_in.get("provider")) for sign_in in sign_ins)


def find_policy_hooks(folder: Path, path: str) -> tuple[str, ...]:
    """Return the policy hooks of the extension at a path, or else of all below it.

    They are stored by path, not by content: a policy that was broken by an
    edit still has to refuse.
    """
    stored_policy = _read_policy(_get_policy_path(folder, path))
    if stored_policy is not None:
        return stored_policy.hooks
    hooks: set[str] = set()
    for file in (folder / "policy").glob("*.json"):
        policy = _read_policy(file)
        if policy is not None and Path(policy.path).is_relative_to(path):
            hooks.update(policy.hooks)
    return tuple(sorted(hooks))


def _get_policy_path(folder: Path, path: str) -> Path:
    return (
        folder
        / "policy"
        / f"{sha256(path.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}.json"
    )


def _read_policy(file: Path) -> StoredPolicy | None:
    with suppress(OSError, *DECODE_ERRORS):
        return msgspec.json.decode(read_start(file, HOST_FILE.value), type=StoredPolicy)
    return None
