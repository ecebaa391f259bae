"""Chooses the formatters of a file: those that are configured, or else one that the project uses.

The types here are small, so that edits need not load what runs formatters (`run_formatters.py`).
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from codeloop.kit.guarded_paths import is_protected, is_secret
from codeloop.kit.paths import expand_user_path
from codeloop.kit.programs import PROJECT_PROGRAM_FOLDERS, find_program
from codeloop.kit.small_files import read_start
from codeloop.schema.config import FormatterConfig, ProgramSandboxConfig
from codeloop.workspace.files.safe_open import LoadedFile
from codeloop.workspace.format.formatter_rows import (
    EDITION_PLACEHOLDER,
    FILE_PLACEHOLDER,
    FIXER_PROGRAMS,
    FORMATTER_ROWS,
    FormatterRow,
)
from codeloop.workspace.process.program_environment import make_tool_environment
from codeloop.workspace.workspace import Workspace

_EMPTY_CONFIG = FormatterConfig()
_EDITION = rb'(?m)^\s*edition\s*=\s*"(\d{4})"'
# The edition that Rust takes when `Cargo.toml` names none.
_DEFAULT_EDITION = "2015"
# The bytes of a project file that are searched for a marker text.
_MAX_MARKER_BYTES = 1024 * 1024


class Formatter(Struct, frozen=True):
    """One formatter for one file. `command`: its program's path and its arguments;
    `folder`: where it runs.

    `is_filter`: it reads its stdin and writes its stdout; else it changes the file in place.
    `success_codes`: its exit codes on success. `obstacle`: a clause on why it can't be run, such as
    that its program was not found; "": it can.
    `sandbox`: True for that of the model's commands, False for none, or what a sandbox of its own
    allows besides the default. `named_variables`: as in Launch.
    """

    name: str
    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    is_filter: bool
    success_codes: tuple[int, ...] = (0,)
    obstacle: str = ""
    sandbox: bool | ProgramSandboxConfig = True
    named_variables: frozenset[str] = frozenset()


class FormattedFile(Struct, frozen=True):
    """A file after its formatters have run.

    `file`: as it is on the disk; `changed_by`: the names of the formatters that changed it;
    `problems`: a line for each that failed.
    """

    file: LoadedFile
    changed_by: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class FormatterState(Struct, frozen=True):
    """A formatter as it is listed for users."""

    name: str
    extensions: tuple[str, ...]
    is_enabled: bool


class Formatters:
    """The formatters of a work tree.

    `config`: the section `formatter` of the configuration; False: none is run. True and None name
    none, so those that the project uses are discovered.
    None is run in an untrusted project: its files decide what a formatter does,
    and may name programs.
    """

    def __init__(
        self,
        workspace: Workspace,
        config: bool | dict[str, FormatterConfig] | None,
        *,
        trusted: bool = True,
    ) -> None:
        self._workspace = workspace
        self._is_off = config is False or not trusted
        entries = config if isinstance(config, dict) else {}
        # What only says what a formatter may do does not say that it is to be run.
        self._limits = {
            name: each
            for name, each in entries.items()
            if each == FormatterConfig(sandbox=each.sandbox) != _EMPTY_CONFIG
        }
        self._configured = {
            name: each for name, each in entries.items() if name not in self._limits
        }

    def find_formatters(self, real: Path) -> list[Formatter]:
        """Return a file's formatters in order: all that are configured,
        or else one that was discovered.
        """
        name = self._workspace.format_for_user(real)
        if (
            self._is_off
            or not self._workspace.contains(real)
            or is_protected(name)
            or is_secret(name)
        ):
            return []
        formatters = [
            self._make_formatter(row, config, real, self._workspace.directory)
            for row, config in self._list_configured()
            if real.suffix in _choose_extensions(row, config) and not config.disabled
        ]
        return formatters or [*self._discover(real)][:1]

    def list_states(self) -> list[FormatterState]:
        """Return the state of all formatters for a file of the directory, built-in ones first."""
        folder = self._workspace.directory
        configured = {row.name: (row, config) for row, config in self._list_configured()}
        rows = {row.name: (row, _EMPTY_CONFIG) for row in FORMATTER_ROWS}
        states: list[FormatterState] = []
        for name, (row, config) in {**rows, **configured}.items():
            extensions = _choose_extensions(row, config)
            is_enabled = bool(extensions) and not self._is_off and not config.disabled
            is_enabled = is_enabled and (
                name in configured or self._find_marker(row, folder) is not None
            )
            if is_enabled:
                # For any file of the folder: its name does not matter.
                is_enabled = not self._make_formatter(row, config, folder / "a", folder).obstacle
            states.append(FormatterState(name, extensions, is_enabled))
        return states

    def _list_configured(self) -> Iterator[tuple[FormatterRow, FormatterConfig]]:
        """Yield the configured formatters, each with the row of its name;
        an unknown name has an empty one.
        """
        rows_by_name = {row.name: row for row in FORMATTER_ROWS}
        for name, config in self._configured.items():
            yield rows_by_name.get(name, FormatterRow(name, extensions=(), command=())), config

    def _discover(self, real: Path) -> Iterator[Formatter]:
        """Yield the built-in formatters that the project uses for a file and
        whose programs are there.
        """
        for row in FORMATTER_ROWS:
            if real.suffix not in row.extensions or row.name in self._configured:
                continue
            folder = self._find_marker(row, real.parent)
            if folder is None:
                continue
            config = self._limits.get(row.name, _EMPTY_CONFIG)
            formatter = self._make_formatter(row, config, real, folder)
            if not formatter.obstacle:
                yield formatter

    def _find_marker(self, row: FormatterRow, start: Path) -> Path | None:
        """Return the nearest folder with a formatter's marker file,
        from `start` up to the work tree's top.
        """
        for folder in self._list_folders_above(start):
            for marker in row.markers:
                name, _, text = marker.partition(":")
                if (folder / name).is_file() and (
                    not text or text.encode() in _read_head(folder / name)
                ):
                    return folder
        return None

    def _list_folders_above(self, start: Path) -> Iterator[Path]:
        for folder in (start, *start.parents):
            if not self._workspace.contains(folder):
                return
            yield folder

    def _make_formatter(
        self, row: FormatterRow, config: FormatterConfig, real: Path, folder: Path
    ) -> Formatter:
        """Make the formatter of a row for the file `real`; it runs in `folder`.
        `config` overrides the row.
        """
        words = tuple(config.command or row.command)
        success_codes = (0, 1) if any(Path(word).name in FIXER_PROGRAMS for word in words) else (0,)
        if EDITION_PLACEHOLDER in row.command:
            edition = self._find_edition(real.parent)
            words = tuple(word.replace(EDITION_PLACEHOLDER, edition) for word in words)
        # The file last, since its path could hold another placeholder.
        words = tuple(word.replace(FILE_PLACEHOLDER, str(real)) for word in words)
        program = self._find_program(words[0], real.parent) if words else None
        obstacle = ""
        if not words:
            obstacle = "the configuration has no command for it"
        elif not program:
            obstacle = f"there is no {words[0]}, neither in the project nor on the PATH"
        return Formatter(
            name=row.name,
            command=(program or "", *words[1:]),
            folder=folder,
            environment=make_tool_environment(self._workspace.environment, config.environment),
            # A configured command names the file, as in the reference: it changes
            # the file in place.
            is_filter=not (config.command or row.in_place),
            success_codes=success_codes,
            obstacle=obstacle,
            sandbox=config.sandbox,
            named_variables=frozenset(config.environment),
        )

    def _find_edition(self, start: Path) -> str:
        """Return the Rust edition named by the nearest `Cargo.toml` that has one (a
        workspace has it at its top).
        """
        for folder in self._list_folders_above(start):
            if match := re.search(_EDITION, _read_head(folder / "Cargo.toml")):
                return match[1].decode()
        return _DEFAULT_EDITION

    def _find_program(self, name: str, start: Path) -> str | None:
        """Find a program: in the project's own environments, the nearest first,
        then on the PATH.
        """
        if "/" in name:
            path = os.path.normpath(self._workspace.directory / expand_user_path(name))
            return path if os.access(path, os.X_OK) else None
        project_path = os.pathsep.join(
            str(folder / each)
            for folder in self._list_folders_above(start)
            for each in PROJECT_PROGRAM_FOLDERS
        )
        user_path = self._workspace.environment.get("PATH")
        return find_program(name, project_path, in_project=True) or find_program(
            name, user_path, in_project=True
        )


def _choose_extensions(row: FormatterRow, config: FormatterConfig) -> tuple[str, ...]:
    return tuple(row.extensions if config.extensions is None else config.extensions)


def _read_head(path: Path) -> bytes:
    try:
        return read_start(path, _MAX_MARKER_BYTES)
    except OSError:
        return b""
