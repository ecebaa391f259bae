"""Reads the instruction files for the model: AGENTS.md, CLAUDE.md,
and those that the key `instructions` names.
"""

import os
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from fnmatch import translate
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.config.files import describe_os_error
from codeloop.config.paths import RULES_FOLDER, Paths
from codeloop.config.project_root import ProjectRoot
from codeloop.kit.guarded_paths import is_secret
from codeloop.kit.paths import expand_user_path
from codeloop.kit.small_files import read_start
from codeloop.schema.config import Config
from codeloop.schema.limits import (
    CONFIG_DEPTH,
    INSTRUCTION_BYTES,
    INSTRUCTION_ENTRIES,
    INSTRUCTION_FILES,
)

INSTRUCTION_FILE_NAMES = ("AGENTS.md", "CLAUDE.md")
# Beside these: what one person adds for one project, and does not commit.
_LOCAL_FILE_NAME = "CLAUDE.local.md"
# How many imports may lead from an instruction file to another one.
_MAX_HOPS = 4
# Of an import that names no file, these are worth a warning; `@types/node` is not an import.
_TEXT_SUFFIXES = (".md", ".mdc", ".txt")
_PATTERN_CHARACTERS = r"[*?\[]"
# `**` does not descend into these: they are large, and their files are not the project's own.
_SKIPPED_FOLDERS = frozenset((".git", "node_modules", ".venv", "__pycache__"))


class Instruction(Struct, frozen=True):
    """An instruction file. Links in its path are not resolved."""

    path: Path
    text: str


class Instructions(Struct, frozen=True):
    """The files in the order in which the model reads them,
    and warnings for those that were left out or cut.
    """

    files: tuple[Instruction, ...]
    warnings: tuple[str, ...]


class TurnInstructions:
    """Reads the instruction files for each turn. `warn` gets each warning of a file that was left
    out or cut, once.
    """

    def __init__(
        self,
        project_root: ProjectRoot,
        paths: Paths,
        config: Config,
        trusted: bool,
        warn: Callable[[str], object],
    ) -> None:
        self._project_root = project_root
        self._paths = paths
        self._config = config
        self._trusted = trusted
        self._warn = warn
        self._shown_warnings: set[str] = set()

    def read(self) -> tuple[tuple[Path, str], ...]:
        """Return the path and the text of each instruction file."""
        instructions = read_instructions(
            self._project_root, self._paths, self._config, trusted=self._trusted
        )
        for warning in instructions.warnings:
            if warning not in self._shown_warnings:
                self._shown_warnings.add(warning)
                self._warn(warning)
        return tuple((each.path, each.text) for each in instructions.files)


def read_instructions(
    project_root: ProjectRoot, paths: Paths, config: Config, *, trusted: bool
) -> Instructions:
    """Read the global file, one file of each folder from the work tree's top down,
    then those of `config.instructions`.

    A folder's AGENTS.md replaces its CLAUDE.md; its CLAUDE.local.md and its rules for all files
    come after it, and after each file those that it imports. The files of an untrusted project are
    read too, since they are only
    data, but a link that leads out of its work tree is not followed.
    A file that can't be read becomes a warning.
    """
    reader = _InstructionReader(project_root, trusted=trusted)
    reader.own_folders = (paths.config, paths.opencode_config, paths.claude_home)
    for file in (
        paths.config / "AGENTS.md",
        paths.opencode_config / "AGENTS.md",
        paths.claude_home / "CLAUDE.md",
    ):
        if reader.add(file, is_ours=True):
            break
    for file in _list_rule_files(paths.claude_home.parent):
        reader.add(file, is_ours=True)
    folders = project_root.folders
    for folder in folders:
        for name in INSTRUCTION_FILE_NAMES:
            if reader.add(folder / name):
                break
        for file in (folder / _LOCAL_FILE_NAME, *_list_rule_files(folder)):
            reader.add(file)
    for pattern in config.instructions:
        # The warnings about the configuration name URLs (`find_unsupported_keys`).
        if pattern.startswith(("http://", "https://")):
            continue
        path = paths.expand_home(pattern)
        is_absolute, is_exact = path.is_absolute(), not re.search(_PATTERN_CHARACTERS, pattern)
        has_match = False
        for base in [Path(path.anchor)] if is_absolute else reversed(folders):
            for file in _find_matches(
                base, str(path.relative_to(base) if is_absolute else path), reader
            ):
                if reader.add(file, is_ours=is_absolute, is_exact=is_exact):
                    has_match = True
        if not has_match:
            reader.warnings.append(f"instructions: no readable file matches {pattern!r}.")
    return Instructions(tuple(reader.files), tuple(reader.warnings))


class _InstructionReader(Struct):
    """Reads instruction files, each once, and collects warnings.

    `own_folders`: those of the user's own instructions, from which a trusted project may import.
    `remaining_entries`: how many more files and folders may be listed for patterns.
    """

    project_root: ProjectRoot
    trusted: bool
    files: list[Instruction] = struct_field(default_factory=list[Instruction])
    warnings: list[str] = struct_field(default_factory=list[str])
    own_folders: tuple[Path, ...] = ()
    read_files: set[Path] = struct_field(default_factory=set[Path])
    remaining_entries: int = struct_field(default_factory=lambda: INSTRUCTION_ENTRIES.value)

    def add(
        self, file: Path, *, is_ours: bool = False, is_exact: bool = True, hops: int = 0
    ) -> bool:
        """Read a file, unless it was read already. Return False if it is missing,
        unreadable or may not be read.

        True also stands for one that is left out because there are too many: a warning says so.

        `is_ours`: it is a global file, or named by an absolute path or pattern, so it may be
        anywhere: of an untrusted configuration no such path is left. Any other file is not read if
        a link leads out of the project, even if the project is trusted: a command may have created
        the link since. A file outside is read if a trusted configuration names it without a pattern
        (`is_exact`), by a path without links.
        """
        try:
            real = file.resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            return False
        if real in self.read_files:
            return True
        is_named = self.trusted and is_exact and os.path.normpath(file) == str(real)
        if not (is_named or is_ours or real.is_relative_to(self.project_root.root)):
            where = "the project" if self.trusted else "a directory that is not trusted"
            self.warnings.append(f"{file} leads out of {where}: not read.")
            return False
        if len(self.files) >= INSTRUCTION_FILES.value:
            self.warnings.append(
                f"{file}: more than {INSTRUCTION_FILES.value} instruction files, not read."
            )
            return True
        self.read_files.add(real)
        text = self._read(file)
        if text is None:
            return False
        if f"/{RULES_FOLDER}/" in str(file):
            # Imported late, as below: most projects have neither rules nor imports.
            from codeloop.config.instruction_rules import split_rule

            rule = split_rule(text)
            if rule.globs:
                # `read` gives it with the first of these files.
                return True
            text = rule.text
        self.files.append(Instruction(file, text))
        if "@" in text:
            from codeloop.config.instruction_rules import list_imports

            for name in list_imports(text):
                self._add_import(file, name, is_ours=is_ours, hops=hops + 1)
        return True

    def _add_import(self, importer: Path, name: str, *, is_ours: bool, hops: int) -> None:
        """Read a file that another one imports: of a project, in its work tree,
        or among the user's own instructions.

        Anything else is left out, with a warning: a repository could have any file of
        the user sent to a model.
        """
        path = Path(os.path.normpath(importer.parent / expand_user_path(name)))
        try:
            real, is_file = path.resolve(), path.is_file()
        except (OSError, RuntimeError, ValueError):
            return
        if not is_file:
            if name.endswith(_TEXT_SUFFIXES):
                self.warnings.append(f"{importer}: @{name} does not exist: not read.")
        elif real in self.read_files:
            return
        elif hops > _MAX_HOPS:
            self.warnings.append(
                f"{importer}: @{name} is more than {_MAX_HOPS} imports away: not read."
            )
        elif not is_ours and is_secret(str(real)):
            self.warnings.append(f"{importer}: @{name} may hold secrets: not read.")
        elif is_ours or real.is_relative_to(self.project_root.root):
            self.add(path, is_ours=is_ours, hops=hops)
        elif (
            self.trusted
            and real.suffix == ".md"
            and any(real.is_relative_to(each) for each in self.own_folders)
        ):
            self.add(path, is_ours=True, hops=hops)
        else:
            self.warnings.append(
                f"{importer}: @{name} is outside the project: not read. Name it in your configuration's `instructions`."
            )

    def _read(self, file: Path) -> str | None:
        limit = INSTRUCTION_BYTES.value
        try:
            content = read_start(file, limit + 1)
        except OSError as error:
            self.warnings.append(f"{file} can't be read: {describe_os_error(error)}.")
            return None
        is_cut = len(content) > limit
        try:
            # An incremental decoder accepts an incomplete character at the cut.
            text = getincrementaldecoder("utf-8-sig")().decode(content[:limit], final=not is_cut)
        except UnicodeDecodeError:
            self.warnings.append(f"{file} is not UTF-8 text: not read.")
            return None
        if is_cut:
            self.warnings.append(f"{file} is longer than {limit:,} bytes: only its start is used.")
        return text


def _find_matches(base: Path, pattern: str, reader: _InstructionReader) -> Iterator[Path]:
    """Yield the files below a folder that match a pattern, sorted;
    `**` stands for any number of folders.
    """
    if not re.search(_PATTERN_CHARACTERS, pattern):
        yield base / pattern
        return
    yield from _walk(base, pattern.split("/"), reader)


def _walk(folder: Path, parts: list[str], reader: _InstructionReader) -> Iterator[Path]:
    part, *below = parts
    if not re.search(_PATTERN_CHARACTERS, part):
        if below:
            yield from _walk(folder / part, below, reader)
        elif (folder / part).is_file():
            yield folder / part
        return
    if part == "**":
        yield from _walk(folder, below or ["*"], reader)
    pattern = re.compile(translate(part))
    for entry in _list_entries(folder, reader):
        if part == "**":
            if (
                entry.is_dir(follow_symlinks=False)
                and entry.name not in _SKIPPED_FOLDERS
                and not entry.name.startswith(".")
            ):
                yield from _walk(folder / entry.name, parts, reader)
        # As in shells, a pattern only matches hidden names if it begins with a dot itself.
        elif pattern.match(entry.name) and (part.startswith(".") or not entry.name.startswith(".")):
            if below and entry.is_dir():
                yield from _walk(folder / entry.name, below, reader)
            elif not below and entry.is_file():
                yield folder / entry.name


def _list_entries(folder: Path, reader: _InstructionReader) -> list[os.DirEntry[str]]:
    """List a folder, sorted by name, until the limit of entries is used up; then warn, once."""
    # The depth bounds the recursion.
    if reader.remaining_entries <= 0 or len(folder.parts) > CONFIG_DEPTH.value:
        return []
    try:
        with os.scandir(folder) as listing:
            dir_entries = list(islice(listing, reader.remaining_entries))
    except OSError:
        return []
    reader.remaining_entries -= len(dir_entries) + 1
    if reader.remaining_entries <= 0:
        reader.warnings.append(
            f"instructions: stopped after {INSTRUCTION_ENTRIES.value:,} files and folders."
        )
    return sorted(dir_entries, key=lambda entry: entry.name)


def _list_rule_files(folder: Path) -> list[Path]:
    """Return the files of a folder's rules, sorted. Never fails."""
    if not (folder / RULES_FOLDER).is_dir():
        return []
    from codeloop.config.instruction_rules import list_rule_files

    return list_rule_files(folder)
