"""Reads the git settings that are the user's own, as data: those of the machine, the home,
and the files they include.

Conditions of includes are decided for a repository that codeloop's git calls never name to git
itself: these use a folder of their own (`own_folder.py`).
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.git.settings import GitSetting, read_file_settings
from codeloop.kit.glob import make_regex

_MAX_INCLUDES = 50
_INCLUDE_IF = "includeif."
_ENDING = ".path"


class RepositoryFacts(NamedTuple):
    """What conditions of includes are about: a git directory, its branch ("": none),
    and the URLs of its remotes.
    """

    folder: Path
    branch: str = ""
    urls: tuple[str, ...] = ()


class UserSettings(NamedTuple):
    """The settings in git's order, of which the last of a name counts.
    `included`: files of conditions that hold.
    """

    settings: tuple[GitSetting, ...]
    included: tuple[Path, ...] = ()

    def get(self, name: str) -> str:
        """Return the value of a setting; "" when there is none."""
        return next(
            (setting.value for setting in reversed(self.settings) if setting.name == name), ""
        )


def read_user_settings(
    environment: Mapping[str, str], facts: RepositoryFacts | None = None
) -> UserSettings:
    """Return the user's settings for a repository.
    Without `facts`, no condition of an include holds.
    """
    reader = _Reader(environment, facts)
    settings = [setting for file in _list_files(environment) for setting in reader.read(file)]
    settings += _read_variables(environment)
    return UserSettings(tuple(settings), tuple(reader.included))


def read_with_includes(
    file: Path, environment: Mapping[str, str], facts: RepositoryFacts
) -> list[GitSetting]:
    """Return the settings of a configuration file and of what it includes."""
    return list(_Reader(environment, facts).read(file))


def _list_files(environment: Mapping[str, str]) -> Iterator[Path]:
    if environment.get("GIT_CONFIG_NOSYSTEM", "").lower() not in {"1", "true", "yes", "on"}:
        yield Path(environment.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig")
    if global_file := environment.get("GIT_CONFIG_GLOBAL"):
        yield Path(global_file)
        return
    home = environment.get("HOME", "")
    if folder := environment.get("XDG_CONFIG_HOME") or (home and f"{home}/.config"):
        yield Path(folder, "git/config")
    if home:
        yield Path(home, ".gitconfig")


def _read_variables(environment: Mapping[str, str]) -> Iterator[GitSetting]:
    """Yield the settings that the user's environment gives to git."""
    count = environment.get("GIT_CONFIG_COUNT", "")
    for number in range(min(int(count), 1000) if count.isascii() and count.isdecimal() else 0):
        name = environment.get(f"GIT_CONFIG_KEY_{number}", "")
        section, _, key = name.rpartition(".")
        yield GitSetting(
            0, f"{section}.{key.lower()}", environment.get(f"GIT_CONFIG_VALUE_{number}", "")
        )


class _Reader:
    """Reads files with what they include. `included`: the files that conditions included,
    in order.
    """

    def __init__(self, environment: Mapping[str, str], facts: RepositoryFacts | None) -> None:
        self._home = environment.get("HOME", "")
        self._facts = facts
        self._remaining = _MAX_INCLUDES
        self.included: list[Path] = []

    def read(self, file: Path) -> Iterator[GitSetting]:
        """Yield the settings of a file; those of an included one in its place, as git does."""
        for setting in read_file_settings(file):
            yield setting
            is_conditional = setting.name.startswith(_INCLUDE_IF) and setting.name.endswith(_ENDING)
            if is_conditional:
                condition = setting.name[len(_INCLUDE_IF) : -len(_ENDING)]
                if self._facts is None or not self._holds(condition, self._facts, file.parent):
                    continue
            elif setting.name != "include.path":
                continue
            if self._remaining <= 0:
                return
            self._remaining -= 1
            path = file.parent / self._expand(setting.value)
            if is_conditional:
                self.included.append(path)
            yield from self.read(path)

    def _holds(self, condition: str, facts: RepositoryFacts, folder: Path) -> bool:
        """Return whether a condition holds. `folder`: that of the file which has it."""
        kind, _, pattern = condition.partition(":")
        match kind:
            case "onbranch":
                return bool(facts.branch) and _matches(
                    f"{pattern}**" if pattern.endswith("/") else pattern, facts.branch
                )
            case "hasconfig":
                name, _, url_pattern = pattern.partition(":")
                return name == "remote.*.url" and any(
                    _matches(url_pattern, url) for url in facts.urls
                )
            case "gitdir" | "gitdir/i":
                if pattern.startswith("./"):
                    pattern = f"{os.path.realpath(folder)}{pattern[1:]}"
                pattern = self._expand(pattern)
                pattern = pattern if pattern.startswith("/") else f"**/{pattern}"
                pattern = f"{pattern}**" if pattern.endswith("/") else pattern
                paths = {str(facts.folder), os.path.realpath(facts.folder)}
                return any(
                    _matches(pattern, path, ignores_case=kind == "gitdir/i") for path in paths
                )
            case _:
                return False

    def _expand(self, text: str) -> str:
        return f"{self._home}{text[1:]}" if text.startswith("~/") else text


def _matches(pattern: str, text: str, *, ignores_case: bool = False) -> bool:
    try:
        expression = re.compile(
            make_regex(pattern), re.DOTALL | (re.IGNORECASE if ignores_case else 0)
        )
    except (ValueError, re.error):
        return False
    return expression.fullmatch(text) is not None
