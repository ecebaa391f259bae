"""Reads the files of a project for the checks that they name: `Check`, `ProjectReader`,
and which names of scripts are those of checks. None is run.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.programs import PROJECT_PROGRAM_FOLDERS
from codeloop.kit.small_files import read_start

CHECK_KINDS = ("test", "lint", "types", "format", "build")
_MAX_LISTED_NAMES = 200
_MAX_PART_LINES = 30
_MAX_VALUE_CHARS = 1_000
# A larger file is not read.
_MAX_FILE_BYTES = 128 * 1024
# The most commands of one kind that are taken from one file.
_MAX_PER_SOURCE = 2
# The first word of a script's name -> the kind of its check. Other names are ignored.
_KINDS_BY_WORD = {
    # What `check` has only the project knows; where tests have no task of their own, it has them.
    **dict.fromkeys(("test", "tests", "unittest", "unit", "spec", "check"), "test"),
    **dict.fromkeys(("lint", "style"), "lint"),
    **dict.fromkeys(
        ("types", "type", "typecheck", "typing", "mypy", "pyright", "tsc", "dts"), "types"
    ),
    **dict.fromkeys(("build", "compile"), "build"),
}
# Names of scripts that only look whether files are formatted: `format:check`, `check-fmt`.
_FORMAT_NAME = (
    r"(?:format|fmt|prettier)[:._-](?:check|ci|diff|test)|(?:check|lint|test|verify)[:._-]"
    r"(?:format|fmt|formatting|prettier)"
)
# Parts of names of scripts that change files, make releases,
# never end or belong to other targets: no checks.
_OTHER_PARTS = frozenset(
    (
        *(
            "fix",
            "write",
            "format",
            "watch",
            "dev",
            "serve",
            "start",
            "update",
            "sync",
            "version",
            "release",
            "publish",
        ),
        *(
            "am",
            "dist",
            "clean",
            "deps",
            "install",
            "setup",
            "image",
            "docker",
            "docs",
            "validation",
            "debug",
            "bad",
        ),
    )
)
# The last part of a script's name that tells its kind better than the first: `test:types`.
_TYPES_PARTS = frozenset(("types", "type", "typescript", "tsd", "tsc", "typecheck", "dts"))
# Names of scripts, targets and tables, so that nothing else of a project's files reaches the model.
_SCRIPT_NAME = r"(?a)[A-Za-z][\w:.-]{0,29}"
# A package.json with packages that must be installed.
_DEPENDENCIES = r"\"(?:devD|d)ependencies\"\s*:\s*\{\s*\""
_TOML_TABLE = r"(?a)\[\[?([\w.\"-]{1,100})\]"
_TOML_KEY = r"(?a)\"?([A-Za-z][\w:.-]*)\"?[ \t]*="


class Check(NamedTuple):
    """A command of a project with its kind (test, lint, types, format, build).

    `script`: the lines that its task runs; `programs`: those that a Makefile's recipe runs by name.
    `origin`: `task` of the project's, `written` in its CI or instructions, or `implied` by a file.
    """

    kind: str
    command: str
    script: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    origin: str = "implied"


class ProjectReader(NamedTuple):
    """Reads the files of a project's folder. `names`: its entries."""

    folder: Path
    root: Path
    names: frozenset[str]

    def read_text(self, name: str) -> str:
        """Return a small file of the folder, by its path in it;
        empty when it is missing, too large, or leads outside the project.
        """
        if name.partition("/")[0] not in self.names:
            return ""
        file = self.folder / name
        try:
            may_lead_outside = file.is_symlink() or "/" in name
            if may_lead_outside and not file.resolve().is_relative_to(self.root.resolve()):
                return ""
            data = read_start(file, _MAX_FILE_BYTES + 1)
        except (OSError, RuntimeError, ValueError):  # RuntimeError: links in a circle
            return ""
        return data.decode("utf-8", "replace") if len(data) <= _MAX_FILE_BYTES else ""

    def list_names(self, folder: str) -> list[str]:
        """Return the names in a folder below, sorted; none if it leads outside the project."""
        path = self.folder / folder
        try:
            if not path.resolve().is_relative_to(self.root.resolve()):
                return []
            with os.scandir(path) as entries:
                return sorted(entry.name for entry in islice(entries, _MAX_LISTED_NAMES))
        except (OSError, RuntimeError):
            return []

    def has_packages(self) -> bool:
        """Return whether the packages of package.json, if it names any, are installed,
        here or at the top.
        """
        if not re.search(_DEPENDENCIES, self.read_text("package.json")):
            return True
        return bool(self.names & {"node_modules", ".pnp.cjs", ".pnp.loader.mjs"}) or (
            self.folder != self.root and (self.root / "node_modules").is_dir()
        )

    def may_exist(self, target: str) -> bool:
        """Return whether what a check is to look at is there, as far as that is a plain path."""
        is_path = "/" in target or "." in target
        is_plain = not any(mark in target for mark in ("*", ":", "@", "..."))
        return not (is_path and is_plain) or (self.folder / target).exists()

    def read_toml(self, name: str) -> dict[str, dict[str, str]]:
        """Return the tables of a TOML file, each with the keys that are on lines of their own,
        and what stands behind them there.
        """
        tables: dict[str, dict[str, str]] = {}
        keys: dict[str, str] = {}
        last = ""
        for line in self.read_text(name).splitlines():
            if header := re.match(_TOML_TABLE, line):
                keys = tables.setdefault(header[1].replace('"', ""), {})
            elif key := re.match(_TOML_KEY, line):
                last = key[1]
                keys[last] = line[key.end() :]
            elif last in keys:
                # An array over several lines.
                keys[last] = (keys[last] + line)[:_MAX_VALUE_CHARS]
        return tables


def match_names(scripts: Mapping[str, Sequence[str]], command: str) -> Iterator[Check]:
    """Yield a check for each script or target that is named after a kind, the shortest names first.

    `scripts`: the lines that each runs. One that changes files, or never ends, is no check.
    """
    valid_names = sorted(
        {name for name in scripts if re.fullmatch(_SCRIPT_NAME, name)},
        key=lambda name: (len(name), name),
    )
    for kind in CHECK_KINDS:
        checks = (
            Check(kind, f"{command} {name}", tuple(scripts[name]), origin="task")
            for name in valid_names
            if _find_kind(name, scripts[name]) == kind and _is_harmless(scripts[name])
        )
        yield from islice(checks, _MAX_PER_SOURCE)


def _is_harmless(script: Sequence[str]) -> bool:
    if not any(script):
        return True
    # Imported here: many projects have no scripts.
    from codeloop.workspace.check_scripts import only_checks

    return only_checks(script)


def _find_kind(name: str, script: Sequence[str]) -> str | None:
    """Return the kind of a script by its name, as `test:unit`, `test-all` or `test.unit`;
    None: it is not a check.
    """
    if name in {"format", "fmt"} and any(script):
        from codeloop.workspace.check_scripts import list_script_checks

        return (
            "format" if any(each.kind == "format" for each in list_script_checks(script)) else None
        )
    if re.fullmatch(_FORMAT_NAME, name.lower()):
        return "format"
    first, *others = re.split(r"[:._-]", name.lower())
    if not _OTHER_PARTS.isdisjoint(others):
        return None
    return "types" if not _TYPES_PARTS.isdisjoint(others) else _KINDS_BY_WORD.get(first)


def read_indented(text: str, pattern: str) -> dict[str, list[str]]:
    """Return the named parts of a text, each with the lines indented below;
    before them, behind a colon, the rest of its own.
    """
    scripts: dict[str, list[str]] = {}
    for match in re.finditer(pattern, text):
        rest, *below = text[match.end() :].split("\n", _MAX_PART_LINES)[:_MAX_PART_LINES]
        depth = len(match[0]) - len(match[0].lstrip())
        is_below = partial(_is_deeper, depth)
        lines = takewhile(is_below, below)
        scripts[match[1]] = [f":{rest}", *(line for line in lines if line.strip())]
    return scripts


def _is_deeper(depth: int, line: str) -> bool:
    return not line.strip() or len(line) - len(line.lstrip()) > depth


def find_own_programs(folder: Path, names: frozenset[str], program: str) -> str | None:
    """Return the folder of the project's own programs (relative) that has this one;
    None: it is in none of them.
    """
    for programs_folder in PROJECT_PROGRAM_FOLDERS:
        # Most projects lack most of these folders, which their entries show
        # without a look at the disk.
        if programs_folder.partition("/")[0] in names and os.access(
            folder / programs_folder / program, os.X_OK
        ):
            return programs_folder
    return None
