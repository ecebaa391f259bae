"""Finds files that hold secrets, by name, location and content: in a project, in the home,
and in installed tools.

The sandbox hides them from commands. `policy.py` and `surroundings.py` use it.
"""

import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.git import compute_blob_id
from codeloop.kit.guarded_paths import HARMLESS_NAMES, SECRET_FOLDERS, SECRET_NAMES
from codeloop.kit.small_files import read_start
from codeloop.kit.wildcard import NameSet
from codeloop.schema.limits import SANDBOX_FOLDERS
from codeloop.workspace.files.path_states import PathStates
from codeloop.workspace.git.index import read_tracked_files
from codeloop.workspace.sandbox.paths.linked_paths import resolve_links
from codeloop.workspace.sandbox.paths.restricted_paths import (
    FOLDERS_NOT_SEARCHED,
    TEST_FOLDER_NAMES,
    TOKEN_FILES,
    TOOL_SETTINGS_NAMES,
)

# In this order: an assignment to a name like "token"; a URL with a password or a token; a git
# header; a private key; an HTTP authorization; Composer's form of it; an option with a secret;
# Bundler's keys; prefixes of services.
_TOKEN_PATTERN = (
    rb"(?im)(?:token|_auth|api[-_]?key|_key|_pat|secret|passw(?:or)?d|smtppass|passphrase|bearer)[\w\"'\])-]*"
    rb"(?:\s*(?:\|\|)?[=:>]\s*[\"']?|[ \t]+[\"'])(?!\$[{(]|%\(|\s)[^\s\"'<>{}$=:]"
    rb"|://[^/\s:@\"']*:[^/\s@\"'${]+@|://[^/\s:@\"'${]{20,}:?@|://[^\s\"']*/t/[\w-]{8}|extraheader\s*="
    rb"|-----BEGIN [A-Z ]*PRIVATE KEY|authorization[\"'\s:=]+\w+\s+\w|bearer\"\s*:\s*\{\s*\"|^(?:-s|--secret)[ =]\w+=\S"
    rb"|BUNDLE_(?!BUILD__|MIRROR__|LOCAL__)[A-Z0-9_]+__[A-Z0-9_]+:"
    rb"|gh[pousr]_[A-Z0-9]{20}|github_pat_|glpat-[\w-]{16}|npm_[A-Z0-9]{30}|pypi-[\w-]{40}|\bsk-[\w-]{20}"
)
"""A token or password, which makes a settings file unreadable;
the name of a variable that holds one does not match.
"""
_KEY_SUFFIXES, _KEY_STORE_SUFFIXES = (".pem", ".key"), (".jks", ".keystore")
_PATTERNS_BY_NAME = {name.rpartition("/")[2].lower(): token for name, token in TOKEN_FILES.items()}
_TOOL_PATTERNS_BY_NAME = _PATTERNS_BY_NAME | dict.fromkeys(TOOL_SETTINGS_NAMES, _TOKEN_PATTERN)


_SECRET_FILES = NameSet((*SECRET_NAMES, *_PATTERNS_BY_NAME))
_TOOL_SECRET_FILES = NameSet((*SECRET_NAMES, *_TOOL_PATTERNS_BY_NAME))
_HARMLESS_FILES = NameSet(HARMLESS_NAMES)
_KEY_PATTERN = rb"PRIVATE KEY|AGE-SECRET-KEY-|\A[0-9a-fA-F]{32,128}\s*\Z"
"""Contents of key files that certificates lack;
the last alternative is the key of Rails credentials.
"""
# The first names of secret folders: `.config` of `.config/gh`.
_SECRET_FOLDER_FIRST_NAMES = frozenset(name.partition("/")[0] for name in SECRET_FOLDERS)
_SETTINGS_BYTES = 64 * 1024
"""Bytes from the start of a file of settings that are searched for a token."""
_MAX_SETTINGS_FILES = 500
"""The most files of a folder of settings that are searched for a token."""
_FIXTURE_BYTES = 64 * 1024
"""The largest file of a test that is compared with git's; larger ones stay hidden."""


class _Folder(NamedTuple):
    """The secrets and subfolders of one folder. `states`: of the folder,
    and of files that are secret by content.
    """

    states: tuple[PathStates, ...]
    secrets: tuple[Path, ...]
    folders: tuple[str, ...]


class ProjectSecrets:
    """The secret files of a project; of a large one, those near its top.

    Only changed folders are read again, since the files are looked up before each command.
    """

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._folders: dict[str, _Folder] = {}

    def find_secrets(self) -> frozenset[Path]:
        """Return the secret files. The first call reads the whole project,
        which may take a second.
        """
        before, self._folders = self._folders, {}
        # Folders with secrets come first: a command that makes many folders near the
        # top must not push them out.
        waiting = [self._root, *(folder for folder, entry in before.items() if entry.secrets)]
        for folder in waiting:
            if folder in self._folders:
                continue
            entry = before.get(folder)
            if entry is None or not all(states.are_unchanged() for states in entry.states):
                entry = _read_folder(folder)
            self._folders[folder] = entry
            waiting += entry.folders[: max(SANDBOX_FOLDERS.value - len(waiting), 0)]
        secrets = (secret for entry in self._folders.values() for secret in entry.secrets)
        return frozenset(
            secret for secret in secrets if not _is_tracked_fixture(secret, self._root)
        )


def _is_tracked_fixture(path: Path, root: str) -> bool:
    """Return whether a file in a folder of tests has the content that git tracks:
    `.git/objects` shows it anyway.
    """
    # The content is compared, not the times in the index, because commands can write to the index.
    if not path.is_relative_to(root):
        return False
    folder, _, name = path.relative_to(root).as_posix().rpartition("/")
    if not TEST_FOLDER_NAMES & set(folder.split("/")):
        return False
    tracked = read_tracked_files(Path(root)).get(folder, {}).get(name)
    try:
        info = path.lstat()
    except OSError:
        return False
    if tracked is None or info.st_size > _FIXTURE_BYTES:
        return False
    return (
        _hash_blob(path, info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino)
        == tracked.blob
    )


@lru_cache(maxsize=64)
def _hash_blob(path: Path, *_stamp: int) -> bytes:
    """Return the id of the blob that git makes of a file; b"" if it can't be read.
    `_stamp`: for the cache key.
    """
    try:
        data = read_start(path, _FIXTURE_BYTES)
    except OSError:
        return b""
    return compute_blob_id(data)


def _read_folder(folder: str) -> _Folder:
    """Find the secrets and subfolders of one folder."""
    states = [PathStates([folder])]
    try:
        with os.scandir(folder) as entries:
            names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except OSError:
        return _Folder(tuple(states), (), ())
    folders = [
        f"{folder}/{name}"
        for name, is_folder in names
        if is_folder and name not in FOLDERS_NOT_SEARCHED
    ]
    secret_names = [name for name, is_folder in names if not is_folder and name in _SECRET_FILES]
    # Whether these are secret depends on their content,
    # so they are looked at again when it changes.
    files_by_content = [
        f"{folder}/{name}"
        for name in secret_names
        if name.lower() in _PATTERNS_BY_NAME or name.endswith(_KEY_SUFFIXES)
    ]
    if files_by_content:
        states.append(PathStates(files_by_content))
    secrets = [Path(folder, name) for name in secret_names if _is_secret(name, Path(folder, name))]
    first_names = {name for name, _ in names if name in _SECRET_FOLDER_FIRST_NAMES}
    if first_names:
        secret_folders = [
            f"{folder}/{each}" for each in SECRET_FOLDERS if each.partition("/")[0] in first_names
        ]
        states.append(PathStates(secret_folders))
        secrets += [path for path in map(Path, secret_folders) if path.exists()]
    return _Folder(tuple(states), tuple(map(resolve_links, secrets)), tuple(folders))


def find_shallow_secrets(folder: Path | str, depth: int) -> Iterator[Path]:
    """Yield the secret files of an installed tool or of the system,
    in a folder and `depth` levels below it.
    """
    try:
        with os.scandir(folder) as entries:
            relevant = [
                entry
                for entry in entries
                if entry.name in _TOOL_SECRET_FILES or entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return
    for entry in relevant:
        if entry.is_dir(follow_symlinks=False):
            yield from find_shallow_secrets(entry.path, depth - 1) if depth else ()
        elif _is_secret(entry.name, Path(entry.path), _TOOL_PATTERNS_BY_NAME):
            yield resolve_links(Path(entry.path))


def find_home_secrets(home: Path) -> Iterator[Path]:
    """Yield the folders and files of a home that hold keys, and the secret files at its top."""
    yield from (home / name for name in SECRET_FOLDERS)
    yield from (home / name for name, token in TOKEN_FILES.items() if _contains(home / name, token))
    try:
        with os.scandir(home) as entries:
            names = [
                entry.name for entry in entries if entry.name in _SECRET_FILES and entry.is_file()
            ]
    except OSError:
        return
    yield from (home / name for name in names if _is_secret(name, home / name))


def holds_token(path: Path, further_pattern: bytes | None = None) -> bool:
    """Return whether a settings file, or a file at any depth of a folder of settings,
    holds a token or a password.

    A folder with very many files counts as if one did.
    `further_pattern`: a pattern of tokens for this file alone.
    """
    if path.is_dir():
        names = islice(
            (Path(top, name) for top, _, names in os.walk(path) for name in names),
            _MAX_SETTINGS_FILES + 1,
        )
        files = list(names)
        return len(files) > _MAX_SETTINGS_FILES or any(
            _contains(each, _TOKEN_PATTERN) for each in files
        )
    return _contains(path, _TOKEN_PATTERN) or (
        further_pattern is not None and _contains(path, further_pattern)
    )


def _is_secret(name: str, path: Path, tokens: Mapping[str, bytes] = _PATTERNS_BY_NAME) -> bool:
    """Return whether a file is secret by its name, or for files that tools need,
    by name and content.

    `tokens`: the name of such a file -> the pattern of a token in it.
    """
    token = tokens.get(name.lower())
    if token is not None:
        return _contains(path, token)
    if name not in _SECRET_FILES or name in _HARMLESS_FILES:
        return False
    if name.endswith(_KEY_STORE_SUFFIXES):
        return not TEST_FOLDER_NAMES & set(path.parts)
    return not name.endswith(_KEY_SUFFIXES) or (
        _contains(path, _KEY_PATTERN) and not TEST_FOLDER_NAMES & set(path.parts)
    )


def _contains(path: Path, pattern: bytes) -> bool:
    """Return whether the first _SETTINGS_BYTES of a file match a pattern."""
    try:
        return re.search(pattern, read_start(path, _SETTINGS_BYTES)) is not None
    except OSError:
        return False
