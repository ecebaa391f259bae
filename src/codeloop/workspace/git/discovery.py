"""Finds the repository that git would use from a directory, and what in it could run a program.

The permission gate uses it: a read-only git command that can run no program is
allowed without a question.
"""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from codeloop.kit.git import find_common_folder, find_git_folder, is_led_elsewhere
from codeloop.kit.git.settings import read_settings
from codeloop.kit.paths import expand_user_path
from codeloop.kit.small_files import read_bounded, read_start

# Variables that make git use other folders or files than those it would find.
_REDIRECTING_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
)
_CONFIG_BYTES = 256 * 1024
_INDEX_BYTES = 32 * 1024 * 1024
# Sections whose settings run no program in read-only commands.
_HARMLESS_SECTION_NAMES = """
advice am apply author blame branch checkout clean color column commit committer feature fetch format gc gh grep gui
index init lfs log maintenance merge notes pack pull push rebase receive rerere stash status submodule tag transfer user
versionsort worktree
"""
_HARMLESS_SECTIONS = frozenset(_HARMLESS_SECTION_NAMES.split())
# Settings with which git runs no program in read-only commands. Any other setting may run one.
_HARMLESS_SETTINGS = (
    r"core\.(abbrev|autocrlf|bare|bigfilethreshold|checkstat|commentchar|commitgraph|compression"
    r"|editor|eol|excludesfile"
    r"|filemode|ignorecase|logallrefupdates|longpaths|multipackindex|pager|precomposeunicode|preloadindex|protecthfs"
    r"|protectntfs|quotepath|repositoryformatversion|safecrlf|sharedrepository|sparsecheckout"
    r"|sparsecheckoutcone|symlinks"
    r"|trustctime|untrackedcache|whitespace)"
    r"|remote\..*\.(url|pushurl|fetch|push|tagopt|prune|prunetags|mirror|gh-resolved|skipfetchall)"
    r"|diff\.(algorithm|colormoved|colormovedws|context|ignoresubmodules|indentheuristic"
    r"|interhunkcontext|mnemonicprefix"
    r"|noprefix|orderfile|relative|renamelimit|renames|statgraphwidth|submodule|suppressblankempty|wserrorhighlight)"
    r"|diff\..*\.(binary|funcname|wordregex|xfuncname)"
    r"|extensions\.(objectformat|preciousobjects|refstorage|relativeworktrees|worktreeconfig)"
)
# Settings of harmless sections that make `git log` start a program to check signatures.
_SIGNATURE_SETTINGS = frozenset({"log.showsignature", "format.pretty"})
# The one hook that read-only commands may run: `git status` writes the index.
_INDEX_HOOK = "post-index-change"
# The mode of a submodule, 0o160000, in the bytes of an index.
_SUBMODULE_MODE = b"\0\0\xe0\0"


class RepositoryLookup(Struct, frozen=True):
    """The repository that git finds from a directory.

    `foreign_reason`: why it may not be the project's own; "": it is, or there is none.
    `program_reason`: what in it may run programs in read-only commands; "": nothing.
    `is_below_top`: the directory is not the top of the work tree.
    """

    foreign_reason: str = ""
    program_reason: str = ""
    is_below_top: bool = False


def find_repository(directory: str, root: Path, environment: Mapping[str, str]) -> RepositoryLookup:
    """Look for the repository as git does: upwards from the directory,
    a work tree or a bare one.
    """
    for name in _REDIRECTING_VARIABLES:
        if environment.get(name):
            return RepositoryLookup(f"the environment sets {name}")
    here, top = Path(os.path.realpath(directory)), Path(os.path.realpath(root))
    if here != top and top not in here.parents:
        return RepositoryLookup("git would run outside the project")
    if ".git" in map(str.lower, here.relative_to(top).parts):
        return RepositoryLookup("git would run inside .git")
    for folder in (here, *here.parents):
        if os.path.lexists(folder / ".git"):
            if folder == top:
                break
            return RepositoryLookup(f"git would use another repository, that in {folder}")
        if _is_bare(folder):
            return RepositoryLookup(
                f"git would use another repository, the bare one that {folder} is"
            )
    folder = find_git_folder(top)
    if folder is None and os.path.lexists(top / ".git"):
        return RepositoryLookup("git would use a repository elsewhere")
    if folder is None:
        return RepositoryLookup(is_below_top=here != top)
    real = Path(os.path.realpath(folder))
    if top in real.parents and real != top / ".git":
        # Only `.git` is protected: commands and edits may change the configuration
        # of another folder.
        return RepositoryLookup("the repository lies among the project's files")
    return RepositoryLookup(
        program_reason=_find_program_reason(folder, top), is_below_top=here != top
    )


def _is_bare(folder: Path) -> bool:
    """Return whether git could take a folder for a bare repository; True if in doubt."""
    if not os.path.lexists(folder / "HEAD"):
        return False
    names = [name for name in ("commondir", "objects", "refs") if os.path.lexists(folder / name)]
    return "commondir" in names or len(names) == 2


def _find_program_reason(folder: Path, top: Path) -> str:
    """Return a clause for the user that names the parts of a repository that may run programs;
    "": there are none.
    """
    if is_led_elsewhere(folder):
        return "a file, commondir, leads git to another repository"
    common = find_common_folder(folder)
    hooks = common / "hooks"
    for file in (common / "config", folder / "config.worktree"):
        try:
            info = file.stat()
        except OSError:
            continue
        setting, hooks_path = _read_program_setting(
            file, info.st_mtime_ns, info.st_size, info.st_ino
        )
        if setting:
            return f"the repository's configuration sets {setting}, which may run programs"
        hooks = top / expand_user_path(hooks_path) if hooks_path else hooks
    if os.path.lexists(hooks / _INDEX_HOOK):
        return f"the repository has a hook, {_INDEX_HOOK}"
    # A split index may have its submodules in the shared part, which is not searched.
    if any(folder.glob("sharedindex.*")) or _has_submodules(folder / "index"):
        return "the repository has submodules, whose own configuration git reads too"
    return ""


def _has_submodules(index: Path) -> bool:
    try:
        info = index.stat()
    except OSError:
        return False
    return _search_submodule_mode(index, info.st_mtime_ns, info.st_size, info.st_ino)


# The stamp of a file is only a part of the cache's key: a changed file is read again.
@lru_cache(maxsize=32)
def _search_submodule_mode(index: Path, *_stamp: int) -> bool:
    """Return whether an index may hold a submodule: the bytes of that mode are somewhere in it."""
    try:
        return _SUBMODULE_MODE in read_bounded(index, _INDEX_BYTES)
    except OSError:
        return True  # unreadable or too large: in doubt it has some


@lru_cache(maxsize=64)
def _read_program_setting(file: Path, *_stamp: int) -> tuple[str, str]:
    """Return the first setting of a file that may run a program,
    and the folder of hooks that it sets; "" for none.
    """
    try:
        text = read_start(file, _CONFIG_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return "what can't be read", ""
    hooks = ""
    for setting in read_settings(text):
        name, value = setting.name, setting.value
        if not name or len(text) >= _CONFIG_BYTES:
            return f"what can't be understood in line {setting.line + 1}", ""
        is_harmless = (
            name.partition(".")[0] in _HARMLESS_SECTIONS
            or re.fullmatch(_HARMLESS_SETTINGS, name) is not None
        )
        if name == "core.hookspath" and re.fullmatch(r"[\w./~-]+", value):
            hooks = value
        elif name == "core.fsmonitor" and value.lower() == "false":
            continue
        elif name in _SIGNATURE_SETTINGS or not is_harmless:
            return name, ""
    return "", hooks
