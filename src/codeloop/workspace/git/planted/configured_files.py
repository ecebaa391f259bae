"""Files of a project that git runs or reads because of the user's or a
repository's configuration.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from codeloop.kit.git.settings import GitSetting, read_file_settings
from codeloop.kit.paths import expand_user_path
from codeloop.kit.small_files import read_start_or_empty
from codeloop.workspace.files.path_states import PathSurvey

MAX_CONFIG_BYTES = 256 * 1024
# The most configuration files read for one repository, included ones too.
_MAX_CONFIG_FILES = 20
_PATH_SETTINGS = ("core.hookspath", "core.attributesfile", "init.templatedir")
_WORD_BREAKS = r"[\s;|&()<>\"'`$!]+"
# A file that an interpreter is given by its name alone, as in `python3 clean.py`.
_SCRIPT_NAME = r"(?i)[\w.-]+\.(?:[cm]?[jt]s|bash|lua|php|pl|ps1|py|r|rb|sh|zsh)"


def list_user_config_files(home: Path, environment: Mapping[str, str], tree: Path) -> list[Path]:
    """Return the configuration files that git reads in every repository.
    `tree`: the work tree in which git runs.
    """
    # git changes to the top of the work tree before it reads these files.
    system_file = tree / (environment.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig")
    if global_file := environment.get("GIT_CONFIG_GLOBAL", ""):
        return [system_file, tree / global_file]
    config_home = environment.get("XDG_CONFIG_HOME", "")
    base = tree / config_home if config_home else home / ".config"
    return [system_file, base / "git/config", home / ".gitconfig"]


def read_settings_with_includes(
    files: Iterable[Path], home: Path
) -> Iterator[tuple[GitSetting, Path | None]]:
    """Yield each setting, including those of included files, with the file that it includes,
    if any.

    Conditions of includes (`includeIf`) count as true: a command can make them so,
    by the name of a branch for example.
    """
    # It grows while it is read: each include is read after the files that are known already.
    waiting = list(dict.fromkeys(files))
    for file in waiting:
        for setting in read_file_settings(file):
            included_file = None
            if setting.name == "include.path" or setting.name.startswith("includeif."):
                included_file = file.parent / expand_config_path(setting.value, home)
                if included_file not in waiting and len(waiting) < _MAX_CONFIG_FILES:
                    waiting.append(included_file)
            yield setting, included_file


def find_configured_files(
    folders: Iterable[Path],
    tree: Path,
    roots: Iterable[Path],
    environment: Mapping[str, str],
    survey: PathSurvey | None = None,
) -> Iterator[Path]:
    """Yield the files and folders of a project that git runs, or reads more settings from,
    because of its settings.

    `folders`: the git directory, and where its settings are, if that is another; `tree`: the work
    tree in which git runs. A missing path counts where only a program, included settings or a
    folder such as that of hooks can be meant: whoever creates it decides what git runs. `survey`
    looks at each path first that the result depends on.
    """
    survey = survey or PathSurvey()
    home = Path(environment.get("HOME") or "/nonexistent")
    own_files = [folder / name for folder in folders for name in ("config", "config.worktree")]
    files, roots = [*list_user_config_files(home, environment, tree), *own_files], tuple(roots)
    for file in files:
        survey.look_at(file)
        # A configuration file may be a link to a file of the project,
        # as with a repository of dotfiles.
        real = Path(os.path.realpath(file))
        if real != file and _is_inside(real, roots):
            yield real
    for setting, included_file in read_settings_with_includes(files, home):
        if included_file is not None:
            survey.look_at(included_file)
        if setting.is_harmless:
            continue
        is_path = included_file is not None or setting.name in _PATH_SETTINGS
        if is_path:
            words = [setting.value]
        else:
            # Of a command line, such as `!python3 tools/clean.py %f`,
            # only words that may name a file.
            line_words = re.split(_WORD_BREAKS, setting.value.lstrip(" !"))
            scripts = [word for word in line_words[1:] if re.fullmatch(_SCRIPT_NAME, word)]
            words = [word for word in line_words if "/" in word or word in scripts]
        for position, word in enumerate(words):
            named_path = included_file or tree / expand_config_path(word, home)
            survey.look_at(named_path)
            path = Path(os.path.realpath(named_path))
            # Paths are of included settings, hook folders and the like. The first word of a command
            # line is its program, unless it is a URL.
            counts_if_missing = (
                is_path or word.startswith(("./", "../")) or (position == 0 and "://" not in word)
            )
            if not word or not _is_inside(path, roots) or (not is_path and path.is_dir()):
                continue
            if counts_if_missing or path.is_file():
                # husky sets core.hooksPath to `.husky/_`, whose wrappers run the hooks in `.husky`:
                # so the folder above counts.
                yield (
                    path.parent
                    if is_path and path.name == "_" and path.parent not in roots
                    else path
                )


class ConfiguredFiles:
    """The configured files of a project's repositories,
    found again only where something has changed.

    `roots`, `environment`: as in `find_configured_files`.
    """

    def __init__(self, roots: Sequence[Path], environment: Mapping[str, str]) -> None:
        self._roots = roots
        self._environment = environment
        self._known: dict[tuple[Path, ...], tuple[PathSurvey, list[Path]]] = {}

    def find(self, folders: Iterable[Path], tree: Path) -> list[Path]:
        """Return the files that `find_configured_files` yields for a repository."""
        key = (tree, *folders)
        known = self._known.get(key)
        if known is None or not known[0].is_unchanged():
            survey = PathSurvey()
            found = list(
                find_configured_files(key[1:], tree, self._roots, self._environment, survey)
            )
            survey.end()
            known = self._known[key] = survey, found
        return known[1]


def expand_config_path(text: str, home: Path) -> Path:
    """Return a path of a configuration file, with the home for `~`."""
    return home / text[2:] if text.startswith("~/") else expand_user_path(text)


def _is_inside(path: Path, roots: tuple[Path, ...]) -> bool:
    return path not in roots and any(map(path.is_relative_to, roots))


def is_copy(path: Path, tree: Path, root: Path) -> bool:
    """Return whether a file of a work tree has the same bytes as that of the project."""
    if not path.is_relative_to(tree) or not path.resolve().is_relative_to(tree):
        return False
    data = read_start_or_empty(path, MAX_CONFIG_BYTES)
    return len(data) < MAX_CONFIG_BYTES and data == read_start_or_empty(
        root / path.relative_to(tree), MAX_CONFIG_BYTES
    )
