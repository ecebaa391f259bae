"""Chooses the servers of a project by the table, the configuration,
the installed programs and the project's trust.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from codeloop.kit.jsonc import is_list, is_object, merge_objects
from codeloop.kit.paths import expand_user_path
from codeloop.kit.programs import PROJECT_PROGRAM_FOLDERS, find_program
from codeloop.lsp.servers.program_check import has_server
from codeloop.lsp.servers.server_row import ServerRow, load_server_rows
from codeloop.schema.config import LspServerConfig
from codeloop.schema.wire import JSON, replace

# Such as `{npm:typescript:lib/tsserver.js}`.
_PACKAGE_PATTERN = r"\{npm:([^{}:]+):([^{}:]+)\}"


def _list_package_folders(program: str) -> list[Path]:
    """Return the folders of npm packages above a program,
    in the order in which Node searches them.
    """
    folders_above = [*Path(os.path.realpath(program)).parents, *Path(program).parents]
    return list(
        dict.fromkeys(
            each if each.name == "node_modules" else each / "node_modules" for each in folders_above
        )
    )


def fill_packages(value: Any, folders: Sequence[Path]) -> Any:
    """Return a value with each text `{npm:FOLDER:FILE}` replaced by the nearest
    such folder of a package.

    Raises LookupError where no such folder with that file is in any of `folders`.
    """
    if is_object(value):
        return {key: fill_packages(each, folders) for key, each in value.items()}
    if is_list(value):
        return [fill_packages(each, folders) for each in value]
    if not isinstance(value, str) or (match := re.fullmatch(_PACKAGE_PATTERN, value)) is None:
        return value
    for folder in folders:
        if (folder / match[1] / match[2]).is_file():
            return str(folder / match[1])
    raise LookupError(match[1])


ChoiceState = Literal["found", "missing", "disabled", "untrusted"]
_ENDINGS = frozenset({".sln", ".csproj", ".fsproj", ".opam"})
"""The entries of a row's `roots` that are endings of names, not names."""


class ServerChoice(Struct, frozen=True):
    """A server, and whether it can run here. `command`: with the path of its program;
    `is_own`: the project has it.
    """

    row: ServerRow
    state: ChoiceState
    command: tuple[str, ...] = ()
    is_own: bool = False


class ProgramSearch(Struct, frozen=True):
    """The places where programs are searched: the project (if trusted),
    `path` (as in PATH) and `installed`.

    `root`: the work tree of the project; `directory`: the one that was opened, in it. `installed`:
    the folder of the servers that codeloop has installed.
    """

    root: Path
    directory: Path
    is_trusted: bool
    path: str
    installed: Path


ServersConfig = bool | dict[str, LspServerConfig] | None


def list_servers(
    config: ServersConfig, search: ProgramSearch, *, warnings: bool = False
) -> tuple[ServerChoice, ...]:
    """List every known or configured server, with whether it can run here.

    `warnings`: the default for reporting warnings like errors.
    """
    if config is False:
        return tuple(ServerChoice(row, "disabled") for row in load_server_rows())
    entries: Mapping[str, LspServerConfig] = {} if config is None or config is True else config
    server_rows = {row.name: row for row in load_server_rows()}
    rows = [_apply_config(row, entries.get(row.name)) for row in server_rows.values()]
    rows += [
        _apply_config(ServerRow(name, {}, []), each)
        for name, each in entries.items()
        if name not in server_rows
    ]
    rows = [
        replace(row, warnings=_reports_warnings(entries.get(row.name), warnings)) for row in rows
    ]
    # Listed once for all servers: telling which folders of PATH are the
    # project's looks at the disk.
    folders = _list_program_folders(search)
    return tuple(_choose_program(row, entries.get(row.name), search, folders) for row in rows)


def _reports_warnings(entry: LspServerConfig | None, default: bool) -> bool:
    return default if entry is None or entry.warnings is None else entry.warnings


def select_servers(
    servers: Iterable[ServerChoice], path: Path, top: Path
) -> list[tuple[ServerChoice, Path]]:
    """Return the servers for a file, each with its root: the first of each kind,
    the project's own before others.

    `top`: the folder above which no root is looked for.
    """
    choices_by_kind: dict[str, tuple[ServerChoice, Path]] = {}
    for server in sorted(servers, key=lambda each: not each.is_own):
        row = server.row
        if server.state != "found" or row.find_language(path) is None:
            continue
        folder = _find_folder_above(path, top, row.needs)
        if row.needs and folder is None:
            continue
        root = _find_folder_above(path, top, row.roots) or top
        choices_by_kind.setdefault(row.stands_for or row.name, (server, root))
    return list(choices_by_kind.values())


def _apply_config(row: ServerRow, entry: LspServerConfig | None) -> ServerRow:
    """Return a row with its configuration applied."""
    if entry is None:
        return row
    languages = row.languages
    if entry.extensions is not None:
        languages = {each: row.languages.get(each, each.lstrip(".")) for each in entry.extensions}
    return replace(
        row,
        languages=languages,
        commands=[entry.command] if entry.command else row.commands,
        environment=entry.env,
        initialization=_merge_options(row.initialization, entry.initialization),
        settings=merge_objects(row.settings, entry.settings),
        answers=entry.initialization or {},
        needs=[] if entry.command else row.needs,
        runs_project_code=row.runs_project_code and not entry.command,
        sandbox=entry.sandbox,
    )


def _merge_options(options: Any, over: JSON | None) -> Any:
    return options if over is None else merge_objects(options or {}, over)


def _choose_program(
    row: ServerRow,
    entry: LspServerConfig | None,
    search: ProgramSearch,
    folders: Sequence[tuple[str, bool]],
) -> ServerChoice:
    """Choose the program of a server. `folders`: see `_list_program_folders`."""
    if entry is not None and entry.disabled:
        return ServerChoice(row, "disabled")
    for command in row.commands:
        for folder, is_own in folders:
            if "/" in command[0]:
                program = _find_executable(command[0], search)
            else:
                program = find_program(command[0], folder, in_project=True)
            if program is None:
                continue
            if not has_server(program, row.packages):
                # A project that has the program wants its own version, not the user's.
                if is_own:
                    return ServerChoice(row, "missing")
                continue
            if not search.is_trusted and _needs_trust(row, (program, *command[1:]), search):
                return ServerChoice(row, "untrusted")
            try:
                initialization = fill_packages(
                    row.initialization,
                    [*_list_node_modules(search), *_list_package_folders(program)],
                )
            except LookupError:
                continue
            row = replace(row, initialization=initialization)
            return ServerChoice(row, "found", (program, *command[1:]), is_own)
    return ServerChoice(row, "missing")


def _needs_trust(row: ServerRow, command: Sequence[str], search: ProgramSearch) -> bool:
    """Return whether a server needs trust: it runs code of the project,
    or has other access than the usual sandbox.

    It also runs code of the project if a word of its command is a file of the project.
    """
    tops = (search.directory, search.root)
    named_files = (search.root / word for word in command if "/" in word or Path(word).suffix)
    return (
        row.runs_project_code
        or row.sandbox is not True
        or any(_is_inside(str(each), tops) for each in named_files)
    )


def _list_program_folders(search: ProgramSearch) -> list[tuple[str, bool]]:
    """Return the folders searched for programs, each with whether it is the project's;
    none of an untrusted project.

    The last entry is all other folders, joined as in PATH.
    """
    tops = dict.fromkeys((search.directory, search.root))
    project_folders = (
        [str(top / name) for top in tops for name in PROJECT_PROGRAM_FOLDERS]
        if search.is_trusted
        else []
    )
    path = [
        each
        for each in search.path.split(os.pathsep)
        if search.is_trusted or not _is_inside(each, tops)
    ]
    installed_folders = [str(search.installed / name) for name in ("bin", "node_modules/.bin")]
    return [
        *((folder, True) for folder in project_folders),
        (os.pathsep.join([*installed_folders, *path]), False),
    ]


def _list_node_modules(search: ProgramSearch) -> list[Path]:
    """Return the folders where npm packages of the project are."""
    tops = dict.fromkeys((search.directory, search.root)) if search.is_trusted else ()
    return [top / "node_modules" for top in tops]


def _is_inside(folder: str, tops: Iterable[Path]) -> bool:
    real = Path(os.path.realpath(folder))
    return any(real.is_relative_to(os.path.realpath(top)) for top in tops)


def _find_executable(program: str, search: ProgramSearch) -> str | None:
    path = os.path.normpath(search.root / expand_user_path(program))
    return path if os.access(path, os.X_OK) else None


def _find_folder_above(path: Path, top: Path, names: Sequence[str]) -> Path | None:
    """Return the nearest folder above a file that has one of these names in it;
    a name may be one of `_ENDINGS`.
    """
    for folder in path.parents:
        if any((folder / name).exists() for name in names) or _has_ending(folder, names):
            return folder
        if folder == top:
            break
    return None


def _has_ending(folder: Path, names: Sequence[str]) -> bool:
    endings = tuple(name for name in names if name in _ENDINGS)
    try:
        return bool(endings) and any(each.name.endswith(endings) for each in os.scandir(folder))
    except OSError:
        return False
