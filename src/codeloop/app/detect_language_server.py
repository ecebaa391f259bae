"""Detects whether a language server can answer questions about a project,
so that models get the tool `lsp`.

A project is opened for each run, so this starts no server, and loads of the room `lsp` only a check
of programs: it looks for programs and files. What comes with the first edit of a
file is in `app/language`.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

import codeloop
from codeloop.app.settings import ProjectSettings
from codeloop.kit.paths import expand_user_path
from codeloop.kit.programs import PROJECT_PROGRAM_FOLDERS, find_program
from codeloop.schema.config import LspServerConfig
from codeloop.schema.installation import check_package_file
from codeloop.schema.wire import replace

_FOREIGN_CODE_FOLDERS = frozenset(("node_modules", "venv", "env", "vendor", "__pycache__"))
"""Folders of code that is not the project's own: searching them would take long,
and prove nothing.
"""
_SERVERS_FILE = Path(str(codeloop.__file__)).with_name("lsp") / "servers" / "servers.json"


class _ServerRow(Struct, frozen=True):
    """The fields of a language server's row that decide whether it can run here; see
    `lsp.servers.server_row`.
    """

    name: str
    languages: dict[str, str]
    commands: list[list[str]]
    roots: list[str] = []
    needs: list[str] = []
    packages: dict[str, str] = {}
    runs_project_code: bool = False
    is_linter: bool = False


def has_language_server(settings: ProjectSettings) -> bool:
    """Return whether a language server could run for a file in the project's upper folders;
    none is started.

    Linters don't count: they report problems with each edit,
    and answer no questions about the code.
    """
    lsp_config, project_root = settings.config.lsp, settings.project_root
    if lsp_config is False:
        return False
    top_folders = dict.fromkeys((project_root.directory, project_root.root))
    rows = _list_rows(lsp_config, trusted=settings.trusted)
    folders = [str(settings.paths.data / "lsp" / name) for name in ("bin", "node_modules/.bin")]
    folders += (
        [str(top / name) for top in top_folders for name in PROJECT_PROGRAM_FOLDERS]
        if settings.trusted
        else []
    )
    path = os.pathsep.join((*folders, settings.environment.get("PATH", "")))
    usable = [row for row in rows if _has_program(row, project_root.root, path)]
    names: set[str] = set()
    # Names gather from folder to folder, since a server may need a file at the top,
    # such as tsconfig.json.
    for folder_names in _list_names_by_folder(top_folders) if usable else ():
        names.update(folder_names)
        if any(_serves(row, names) for row in usable):
            return True
    return False


def _list_rows(
    lsp_config: bool | dict[str, LspServerConfig] | None, *, trusted: bool
) -> list[_ServerRow]:
    """Return the rows of the servers that may run, known and configured ones, without linters."""
    rows = msgspec.json.decode(
        check_package_file(_SERVERS_FILE).read_bytes(), type=list[_ServerRow]
    )
    if isinstance(lsp_config, dict):
        known_names = {row.name for row in rows}
        rows += [
            _ServerRow(name, languages={}, commands=[])
            for name in lsp_config
            if name not in known_names
        ]
        rows = [_apply_config(row, lsp_config.get(row.name)) for row in rows]
    return [row for row in rows if not row.is_linter and (trusted or not row.runs_project_code)]


def _apply_config(row: _ServerRow, entry: LspServerConfig | None) -> _ServerRow:
    """Return a row with its configuration applied, as in `lsp.servers.choice`;
    a disabled one has no command.
    """
    if entry is None:
        return row
    languages = row.languages if entry.extensions is None else dict.fromkeys(entry.extensions, "")
    if entry.disabled or not entry.command:
        return replace(row, languages=languages, commands=[] if entry.disabled else row.commands)
    return replace(
        row, languages=languages, commands=[entry.command], needs=[], runs_project_code=False
    )


def _has_program(row: _ServerRow, root: Path, path: str) -> bool:
    for name in dict.fromkeys(command[0] for command in row.commands if command):
        program_path = (
            str(root / expand_user_path(name))
            if "/" in name
            else find_program(name, path, in_project=True)
        )
        if program_path is not None and os.access(program_path, os.X_OK):
            from codeloop.lsp.servers.program_check import has_server

            if has_server(program_path, row.packages):
                return True
    return False


def _serves(row: _ServerRow, names: set[str]) -> bool:
    """Return whether a project with these file names and endings has files for a server."""
    return not names.isdisjoint((*row.languages, *row.roots)) and not (
        row.needs and names.isdisjoint(row.needs)
    )


def _list_names_by_folder(top_folders: Iterable[Path]) -> Iterator[list[str]]:
    """Yield the names and endings in each folder of a project, from the top down,
    up to LSP_SEARCHED_FOLDERS.
    """
    from codeloop.schema.bounds.language_tools import LSP_SEARCHED_FOLDERS

    unread_folders = deque(map(str, top_folders))
    for _ in range(LSP_SEARCHED_FOLDERS.value):
        if not unread_folders:
            return
        names: list[str] = []
        with suppress(OSError), os.scandir(unread_folders.popleft()) as entries:
            for entry in entries:
                name, dot, ending = entry.name.rpartition(".")
                names += (entry.name, dot + ending if name else "")
                is_own_code = entry.name[:1] != "." and entry.name not in _FOREIGN_CODE_FOLDERS
                if is_own_code and entry.is_dir(follow_symlinks=False):
                    unread_folders.append(entry.path)
        yield names
