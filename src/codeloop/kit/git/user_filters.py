"""The filters of files that codeloop's git runs in a trusted project: those of the user's
own settings, and git-lfs.

A repository's settings never name one: commands and other people's tools write there.
"""

import shlex
from collections.abc import Mapping
from typing import NamedTuple

from codeloop.kit.git import make_git_settings
from codeloop.kit.git.own_folder import RealFolder
from codeloop.kit.programs import find_program

_FILTER_ENDINGS = (".clean", ".smudge", ".process")


class _KnownFilter(NamedTuple):
    """A filter that is known by its name. `program`: on the user's PATH;
    `calls`: its settings, without the program.

    `passed`: the endings of the repository's settings that it needs;
    none of these names a program or a file.
    """

    program: str
    calls: Mapping[str, str]
    passed: tuple[str, ...]


_KNOWN_FILTERS = {
    "lfs": _KnownFilter(
        "git-lfs",
        {"clean": "clean -- %f", "smudge": "smudge -- %f", "process": "filter-process"},
        (".url", ".fetch", ".remote"),
    )
}


def list_filter_names(real: RealFolder, environment: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the filters that run for a trusted project."""
    return frozenset((*_list_user_filters(real), *_find_known_filters(environment)))


def make_filter_variables(real: RealFolder, environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` (that of a call of git) with the variables by which
    git knows the filters.

    Those that the user's plain settings name need none.
    Raises OSError: a folder for files of a filter can't be made.
    """
    variables = dict(environment)
    # Conditions of the user's includes are about the repository's own folder,
    # which git does not see.
    for file in real.user.included:
        variables |= make_git_settings({"include.path": str(file)}, variables)
    for name, program in _find_known_filters(environment).items():
        row = _KNOWN_FILTERS[name]
        (real.common / name).mkdir(exist_ok=True)
        settings = {
            setting.name: setting.value
            for setting in real.settings
            if setting.name.startswith(("remote.", "branch."))
            and setting.name.endswith(row.passed)
            and setting.is_harmless
        }
        if name not in _list_user_filters(real):
            settings |= {
                f"filter.{name}.{verb}": f"{shlex.quote(program)} {words}"
                for verb, words in row.calls.items()
            }
            settings[f"filter.{name}.required"] = "true"
        variables |= make_git_settings(settings, variables)
    return variables


def _find_known_filters(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the paths of the programs of the known filters that are installed,
    by the filters' names.
    """
    found = {
        name: find_program(row.program, environment.get("PATH"))
        for name, row in _KNOWN_FILTERS.items()
    }
    return {name: program for name, program in found.items() if program is not None}


def _list_user_filters(real: RealFolder) -> set[str]:
    names = (setting.name for setting in real.user.settings if setting.name.startswith("filter."))
    return {
        name.removeprefix("filter.").rpartition(".")[0]
        for name in names
        if name.endswith(_FILTER_ENDINGS)
    }
