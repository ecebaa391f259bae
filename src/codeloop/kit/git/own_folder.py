"""Makes the git directories that codeloop's own git calls use: our configuration over
the objects of a real one.

git obeys what it finds in a git directory: settings that name programs and further files, hooks,
attributes. So a call of ours never names a real one. Its own holds links to the real objects,
references, logs and index, which git locks and changes there, and a copy of HEAD; what the
configuration says is read here as data, and of it only what decides how files are
compared and stored is passed on.
"""

import os
import re
import shlex
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.git import find_common_folder, find_outside_link, is_listed_as_safe
from codeloop.kit.git.settings import GitSetting, read_file_settings
from codeloop.kit.git.user_settings import RepositoryFacts, UserSettings, read_user_settings
from codeloop.kit.programs import is_excluded
from codeloop.kit.remove_tree import TEMPORARY_BASES, find_temporary_base, temporary_folder
from codeloop.kit.small_files import read_start, read_start_or_empty

# Entries of a git directory that all its work trees share, and those of one work tree.
_SHARED_ENTRIES = ("objects", "refs", "packed-refs", "shallow", "worktrees")
# Where filters keep files: git does not look there.
_FILTER_ENTRIES = ("lfs", "git-crypt")
_TREE_ENTRIES = ("index", "logs", "reftable", "FETCH_HEAD")
# git makes these where they are missing, by a file beside them that gets their name.
_MADE_ENTRIES = ("packed-refs", "shallow", "index", "FETCH_HEAD")
# The state of a merge or of a picked commit: copied,
# and removed from the real directory when git has finished it.
_STATE_FILES = (
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "SQUASH_MSG",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
)
_MAX_STATE_BYTES = 1024 * 1024
_HEAD_BYTES = 4096
_RULES_BYTES = 256 * 1024
_CONFIG_START = "[core]\n\trepositoryFormatVersion = 1\n\tbare = false\n\tsplitIndex = false\n\tfsmonitor = false\n"
# Settings that decide how files are compared, converted and stored, or how a merge is written down.
# No value of theirs names a program, a file or a place: only such values are passed on.
_PASSED_NAMES = (
    r"core\.(autocrlf|checkstat|compression|eol|filemode|ignorecase|logallrefupdates|longpaths|precomposeunicode"
    r"|safecrlf|sharedrepository|sparsecheckout|sparsecheckoutcone|symlinks|trustctime)"
    r"|index\.(sparse|version)|diff\.(algorithm|renames)|merge\.(conflictstyle|directoryrenames|renames)"
)
_PLAIN_VALUE = r"(?a)[\w.+-]{1,40}"
# Extensions of git's format for repositories: those that git has to know, and those that matter for
# fetching and for settings only. With any other, git refuses a repository, and so do we.
_PASSED_EXTENSIONS = (
    "objectformat",
    "compatobjectformat",
    "refstorage",
    "relativeworktrees",
    "preciousobjects",
    "noop",
)
_DROPPED_EXTENSIONS = ("partialclone", "worktreeconfig", "submodulepathconfig")
_MAX_FORMAT = 1


class UnusableRepository(Exception):
    """A repository that git can't be run for; the message says why."""


class RealFolder(NamedTuple):
    """A git directory of the user's, the one with its objects, and its settings,
    which are only data.

    `user`: the user's own settings for it.
    """

    folder: Path
    common: Path
    settings: tuple[GitSetting, ...]
    user: UserSettings

    def get(self, name: str) -> str:
        """Return the value of a setting: the repository's, else the user's;
        "" when there is none.
        """
        own = next(
            (setting.value for setting in reversed(self.settings) if setting.name == name), ""
        )
        return own or self.user.get(name)


def read_real_folder(folder: Path, environment: Mapping[str, str]) -> RealFolder:
    """Read the settings that hold for a git directory."""
    common = find_common_folder(folder)
    settings = read_file_settings(common / "config")
    if any(
        setting.name == "extensions.worktreeconfig" and _is_true(setting.value)
        for setting in settings
    ):
        settings += read_file_settings(folder / "config.worktree")
    head = read_head(folder)
    urls = tuple(
        each.value
        for each in settings
        if each.name.startswith("remote.") and each.name.endswith(".url")
    )
    facts = RepositoryFacts(
        folder, head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else "", urls
    )
    return RealFolder(folder, common, settings, read_user_settings(environment, facts))


def read_head(folder: Path) -> str:
    """Return the text of a HEAD, without the line's end; "" when it can't be read."""
    file = folder / "HEAD"
    try:
        # Very old versions of git made a link: `refs/heads/main`.
        target = os.readlink(file) if file.is_symlink() else ""
        if target.startswith("refs/"):
            return f"ref: {target}"
        return read_start(file, _HEAD_BYTES).decode("utf-8", "surrogateescape").rstrip()
    except OSError:
        return ""


@contextmanager
def open_own_folder(real: RealFolder, environment: Mapping[str, str]) -> Generator[Path]:
    """Yield a git directory of ours for a real one; it is removed in the end,
    and a HEAD that moved is carried over.

    Raises UnusableRepository, OSError.
    """
    config = _make_config(real)
    excludes = _read_excludes(real, environment)
    _check_links(real, environment)
    with temporary_folder("codeloop-git-", _choose_base()) as top:
        shared = top / "git"
        _make_folder(shared, real.common, (*_SHARED_ENTRIES, *_TREE_ENTRIES, *_FILTER_ENTRIES))
        (shared / "config").write_text(config, encoding="utf-8")
        (shared / "info" / "exclude").write_bytes(excludes)
        own = shared
        if real.folder != real.common:
            own = top / "tree"
            _make_folder(own, real.folder, _TREE_ENTRIES)
            (own / "commondir").write_text("../git\n")
        _link(real.folder / "info", own / "info", ("sparse-checkout",))
        for shared_index in real.folder.glob("sharedindex.*"):
            (own / shared_index.name).symlink_to(shared_index)
        head = read_head(real.folder)
        states = _copy_states(real.folder, own)
        try:
            yield own
        finally:
            _carry_over(own, real.folder, head, states)


def _choose_base() -> Path:
    """Return a folder for temporary files that no command of the agent can write to,
    if there is one.
    """
    # A variable may lead it into a project.
    usual = find_temporary_base()
    return next(
        (
            each
            for each in (usual, *TEMPORARY_BASES)
            if each.is_dir() and not is_excluded(str(each))
        ),
        usual,
    )


def _make_folder(own: Path, real: Path, entries: Iterable[str]) -> None:
    (own / "info").mkdir(parents=True)
    (own / "HEAD").write_text(f"{read_head(real)}\n", encoding="utf-8", errors="surrogateescape")
    _link(real, own, entries)


def _link(real: Path, own: Path, names: Iterable[str]) -> None:
    for name in names:
        if name in _MADE_ENTRIES or os.path.lexists(real / name):
            (own / name).symlink_to(real.absolute() / name)


def _check_links(real: RealFolder, environment: Mapping[str, str]) -> None:
    """Raise UnusableRepository for an entry that leads to another repository,
    unless the user's settings allow it.
    """
    entry = find_outside_link(real.common)
    top = real.common.parent
    if entry is not None and not is_listed_as_safe(top, environment):
        raise UnusableRepository(
            f"{entry} is a link to another repository, so git is not run for it. If it is yours: "
            f"git config --global --add safe.directory {shlex.quote(str(top))}"
        )


def _make_config(real: RealFolder) -> str:
    """Return the text of our configuration."""
    values = {
        setting.name: setting.value
        for setting in (*real.user.settings, *real.settings)
        if re.fullmatch(_PASSED_NAMES, setting.name) and re.fullmatch(_PLAIN_VALUE, setting.value)
    }
    lines = [_CONFIG_START]
    for name, value in values.items():
        section, _, key = name.partition(".")
        lines.append(f"[{section}]\n\t{key} = {value}\n")
    lines.append("[extensions]\n")
    lines += [f"\t{name} = {value}\n" for name, value in _find_extensions(real.settings).items()]
    return "".join(lines)


def _find_extensions(settings: Iterable[GitSetting]) -> dict[str, str]:
    """Return the extensions that git has to know. Raises UnusableRepository for
    one that is not known here.
    """
    extensions: dict[str, str] = {}
    version = 0
    for setting in settings:
        if setting.name == "core.repositoryformatversion":
            version = int(setting.value) if setting.value.isdecimal() else _MAX_FORMAT + 1
        elif setting.name.startswith("extensions."):
            extensions[setting.name.removeprefix("extensions.")] = setting.value
    unknown = [
        name for name in extensions if name not in (*_PASSED_EXTENSIONS, *_DROPPED_EXTENSIONS)
    ]
    if version > _MAX_FORMAT or (version and unknown):
        what = f"the extension {unknown[0]}" if unknown else f"the format {version}"
        raise UnusableRepository(
            f"The repository has {what}, which codeloop does not know. Use git itself for it."
        )
    return {
        name: value
        for name, value in extensions.items()
        if name in _PASSED_EXTENSIONS and re.fullmatch(_PLAIN_VALUE, value)
    }


def _read_excludes(real: RealFolder, environment: Mapping[str, str]) -> bytes:
    """Return the patterns of ignored files that hold for all folders; as in git, later ones win."""
    home = environment.get("HOME", "")
    file = real.get("core.excludesfile")
    if not file:
        folder = environment.get("XDG_CONFIG_HOME") or (home and f"{home}/.config")
        file = f"{folder}/git/ignore" if folder else ""
    file = f"{home}{file[1:]}" if file.startswith("~/") else file
    users = read_start_or_empty(Path(file), _RULES_BYTES) if file.startswith("/") else b""
    return users + b"\n" + read_start_or_empty(real.common / "info" / "exclude", _RULES_BYTES)


def _copy_states(real: Path, own: Path) -> dict[str, bytes]:
    """Copy the files of an operation that is under way; return their contents by name."""
    states: dict[str, bytes] = {}
    for name in _STATE_FILES:
        if os.path.lexists(real / name):
            states[name] = read_start_or_empty(real / name, _MAX_STATE_BYTES)
            (own / name).write_bytes(states[name])
    return states


def _carry_over(own: Path, real: Path, head: str, states: Mapping[str, bytes]) -> None:
    """Move the real HEAD as git moved ours, and remove the state of what git finished.
    Raises UnusableRepository.
    """
    new_head = read_head(own)
    if new_head not in ("", head):
        _replace_head(real, head, new_head)
    for name, data in states.items():
        if (
            not os.path.lexists(own / name)
            and read_start_or_empty(real / name, _MAX_STATE_BYTES) == data
        ):
            with suppress(OSError):
                (real / name).unlink()


def _replace_head(folder: Path, old: str, new: str) -> None:
    """Replace a HEAD if it is still the old one, as git does: by a lock file that gets its name."""
    lock = folder / "HEAD.lock"
    try:
        descriptor = os.open(
            lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666
        )
    except OSError as error:
        raise UnusableRepository(
            f"{folder / 'HEAD'} can't be locked, and should become {new}: {error}."
        ) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(f"{new}\n".encode("utf-8", "surrogateescape"))
        if read_head(folder) != old:
            raise UnusableRepository(
                f"{folder / 'HEAD'} was changed meanwhile, so it did not become {new}."
            )
        lock.replace(folder / "HEAD")
    finally:
        lock.unlink(missing_ok=True)


def _is_true(value: str) -> bool:
    return value.lower() in {"true", "yes", "on", "1"}
