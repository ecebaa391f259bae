"""Reads the files of a project that take effect once it is trusted: trust holds only
for their present contents.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.config.paths import Paths, get_plugin_name, get_plugin_path, list_marketplace_files
from codeloop.config.project_root import list_folders_down
from codeloop.config.references import REFERENCE_PATTERN, map_references, read_variable
from codeloop.config.sources import PROJECT_CONFIG_FOLDERS, PROJECT_FILES
from codeloop.kit.jsonc import JsoncError, KeyPath, is_list, is_object, iterate_texts, parse_jsonc
from codeloop.kit.small_files import open_regular, read_start
from codeloop.schema.limits import CONFIG_BYTES, CONFIG_DEPTH, TRUST_BYTES, TRUST_FILES

# The names of folders whose files take effect, and of the folders of a project
# (HOMES) that may contain these.
PAGE_FOLDERS = frozenset(("agent", "agents", "mode", "modes", "command", "commands"))
SKILL_FOLDERS = frozenset(("skill", "skills"))
CODELOOP_HOMES = (".opencode", ".codeloop")
SKILL_HOMES = (".claude", ".agents")
CLAUDE_HOMES = (".claude",)
CLAUDE_PAGE_FOLDERS = frozenset(("agents", "commands"))
PROGRAM_FOLDERS = frozenset(("plugin", "plugins", "tool", "tools"))
_FOLDERS_BY_HOME = {
    **dict.fromkeys(CODELOOP_HOMES, PAGE_FOLDERS | PROGRAM_FOLDERS),
    **dict.fromkeys(CLAUDE_HOMES, CLAUDE_PAGE_FOLDERS),
}
"""The folders whose files all take effect, by the folder that has them;
of skills only `SKILL.md` does.
"""
_ALL_HOMES = frozenset((*CODELOOP_HOMES, *SKILL_HOMES))
_INSTRUCTION_FILE_NAMES = ("AGENTS.md", "CLAUDE.md")
_COMMAND_SECTIONS = ("mcp", "mcpServers", "lsp", "formatter")
"""Sections of the configuration whose `command` codeloop starts without asking."""
# In the command of a hook: `"$CLAUDE_PROJECT_DIR"/hooks/check.sh`,
# `${CODELOOP_PROJECT_DIR}/check.sh`.
_PROJECT_VARIABLE = r"""["']?\$\{?(?:CLAUDE|CODELOOP)_PROJECT_DIR\}?["']?"""
# What may be a path in a command: `python3`, `./check.py` and `--quiet` in
# `python3 ./check.py --quiet`.
_COMMAND_WORD = r"""[^\s"'`;|&()<>=$]+"""
# A path with blanks: `'my hooks/check.sh'`.
_QUOTED_TEXT = r"""'[^']*'|"[^"]*\""""
# The folder that the words after it are relative to: `hooks` in `cd hooks && ./check.sh`.
_CD_FOLDER = r"""\bcd\s+["']?([^\s"'`;|&()<>=$]+)"""
_WORKSPACE_VARIABLE = r"^\$\{workspace(?:Folder|Root)\}/?"
_GLOB_CHARACTERS = frozenset("*?[")
# The content of a file that exists and can't be read: if it becomes readable, that is a change.
_UNREADABLE_CONTENT = b"\0unreadable"
# A larger program is not hashed; hashing so many bytes takes a tenth of a second.
_MAX_HASHED_SIZE = 256 * 1024 * 1024


class TooManyFiles(Exception):
    """A project has too many or too large files to be compared;
    the message is the path that exceeded the limit.
    """


class ProjectContents(Struct, frozen=True):
    """The present contents of a project's files that count for trust,
    by path relative to the work tree's top.

    `files`: configuration, agents, commands, skills, plugins and tools, and files that the
    configuration names: instructions, and programs that codeloop starts.
    `hidden`: files that are never shown. They may hold secrets (those that `{file:..}` names, or
    links lead out to), or are large programs, of which this has a digest (see `add_program`).
    `named_texts`: the paths of instructions and references (`{file:..}`) that a configuration file
    names, by the path of that file. Programs are not among them.
    """

    files: dict[str, bytes] = struct_field(default_factory=dict[str, bytes])
    hidden: dict[str, bytes] = struct_field(default_factory=dict[str, bytes])
    named_texts: dict[str, set[str]] = struct_field(default_factory=dict[str, set[str]])

    def compute_digests(self) -> dict[str, str]:
        """Return the SHA-256 of each file's content, by path."""
        from hashlib import sha256

        return {
            path: sha256(data).hexdigest()
            for path, data in sorted((self.files | self.hidden).items())
        }


def read_contents(paths: Paths, root: Path, directory: Path) -> ProjectContents:
    """Read the files that take effect in a directory: those of the work tree's folders
    from `root` down to it.

    Both paths are resolved. Blocks while it reads. Raises TooManyFiles.
    """
    reader = _ContentReader(root)
    for folder in list_folders_down(root, directory):
        for file in _list_config_files(folder):
            if (data := reader.add(file)) is not None:
                _read_named_files(reader, paths, directory, file, data)
        for file in _list_extension_files(folder):
            reader.add(file)
        # The text of instructions is only data, but a link may lead to any file of the user.
        for name in _INSTRUCTION_FILE_NAMES:
            if (folder / name).is_symlink() and not reader.is_inside(folder / name):
                reader.add(folder / name)
    return reader.contents


def is_read_for(path: str, root: Path, directory: Path) -> bool:
    """Return whether `read_contents` would read a stored path for a directory
    if the file existed.
    """
    parts = Path(path).parent.parts
    # How many folders there are above the file, or above the `.codeloop`,
    # `.claude` and such that the file is in.
    depth = next((number for number, part in enumerate(parts) if part in _ALL_HOMES), len(parts))
    return root.joinpath(*parts[:depth]) in list_folders_down(root, directory)


def encode_path(root: Path, file: Path) -> str:
    """Return a path relative to the work tree's top as it is stored: bytes that
    are not UTF-8 are escaped.
    """
    return str(file.relative_to(root)).encode("utf-8", "backslashreplace").decode()


class _ContentReader:
    """Reads files into `contents`. Raises TooManyFiles at a limit of their number or total size."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.contents = ProjectContents()
        self._remaining_bytes = TRUST_BYTES.value

    def add(self, file: Path, *, is_hidden: bool = False) -> bytes | None:
        """Add a file of the work tree; return its content, or None when it does not exist."""
        key = encode_path(self.root, file)
        try:
            data = read_start(file, CONFIG_BYTES.value + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError):
            data = _UNREADABLE_CONTENT
        self._remaining_bytes -= len(data) + len(key)
        if (
            self._remaining_bytes < 0
            or len(data) > CONFIG_BYTES.value
            or len(self.contents.files) >= TRUST_FILES.value
        ):
            raise TooManyFiles(key)
        files = (
            self.contents.hidden if is_hidden or not self.is_inside(file) else self.contents.files
        )
        files[key] = data
        return data

    def add_program(self, file: Path) -> None:
        """Add a program; of a large one, its digest; of a very large one,
        the size and times that change with it.
        """
        try:
            is_large = file.stat().st_size > CONFIG_BYTES.value
        except (OSError, ValueError):
            return
        if not file.is_file():
            return
        if not is_large:
            self.add(file)
            return
        from hashlib import file_digest

        key = encode_path(self.root, file)
        with suppress(OSError), open_regular(file) as descriptor:
            status = os.fstat(descriptor)
            if status.st_size > _MAX_HASHED_SIZE:
                # A program can't forge the change time of an inode.
                facts = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
                self.contents.hidden[key] = repr(facts).encode()
                return
            with os.fdopen(descriptor, "rb", closefd=False) as program:
                self.contents.hidden[key] = file_digest(program, "sha256").digest()

    def is_inside(self, file: Path) -> bool:
        """Return whether a file is in the work tree, links followed."""
        return Path(os.path.realpath(file)).is_relative_to(self.root)


def _list_config_files(folder: Path) -> Iterator[Path]:
    yield from (folder / name for name in PROJECT_FILES)
    yield from (
        folder / subfolder / name for subfolder, names in PROJECT_CONFIG_FOLDERS for name in names
    )


def _list_extension_files(folder: Path) -> Iterator[Path]:
    """Yield the files of skills, agents, commands, plugins and tools in a folder's `.codeloop`,
    `.claude` and such.
    """
    for home in (*SKILL_HOMES, *CODELOOP_HOMES):
        try:
            present = {each.name for each in (folder / home).iterdir()}
        except OSError:
            continue
        for name in sorted(present & SKILL_FOLDERS):
            yield from (
                file for file in _list_files(folder / home / name) if file.name == "SKILL.md"
            )
        for name in sorted(present & _FOLDERS_BY_HOME.get(home, frozenset[str]())):
            yield from _list_files(folder / home / name)


def _list_files(folder: Path) -> Iterator[Path]:
    entry_count = 0
    for top, folders, files in os.walk(folder):
        entry_count += len(folders) + len(files)
        if entry_count > TRUST_FILES.value:
            raise TooManyFiles(str(folder))
        yield from (Path(top, name) for name in files)


def _read_named_files(
    reader: _ContentReader, paths: Paths, directory: Path, file: Path, data: bytes
) -> None:
    """Add the files of the work tree that a configuration file names: references, instructions,
    programs.

    Files outside the work tree are left out: they are the user's,
    and the project can't change them.
    """
    try:
        values = parse_jsonc(data.decode("utf-8-sig"), depth=CONFIG_DEPTH.value).value
    except (JsoncError, UnicodeDecodeError):
        return
    # A reference may be part of a path, so the values are read both as they are
    # written and as they are used.
    expanded = _replace_references(values, file.parent, paths)
    forms = [values] if expanded == values else [values, expanded]
    folders = list_folders_down(reader.root, directory)
    names = reader.contents.named_texts.setdefault(encode_path(reader.root, file), set())

    def add_text(path: Path, *, is_hidden: bool) -> None:
        plain = Path(os.path.normpath(path))
        # No file name has a NUL character, and the functions of the system raise ValueError for it.
        if plain.is_relative_to(reader.root) and "\0" not in str(plain):
            names.add(encode_path(reader.root, plain))
            reader.add(plain, is_hidden=is_hidden)

    for name in _list_instructions(forms):
        for folder in folders:
            add_text(folder / paths.expand_home(name), is_hidden=False)
    for text in iterate_texts(values):
        for match in re.finditer(REFERENCE_PATTERN, text):
            if match[1] == "file":
                add_text(file.parent / paths.expand_home(match[2].strip()), is_hidden=True)
    for name in _list_variable_files(forms):
        add_text(directory / paths.expand_home(name), is_hidden=True)
    for form in forms:
        _add_plugins(reader, paths, file, form)
        for word in (*_list_command_words(form), *_read_hook_words(reader, paths, file, form)):
            for folder in folders:
                plain = Path(os.path.normpath(folder / paths.expand_home(word)))
                if plain.is_relative_to(reader.root) and "\0" not in word:
                    reader.add_program(plain)


def _list_instructions(forms: Iterable[Any]) -> Iterator[str]:
    """Yield the paths in the key `instructions`;
    patterns are left out, since they name no single file.
    """
    for form in forms:
        entries = form.get("instructions") if is_object(form) else None
        for text in iterate_texts(entries if is_list(entries) else []):
            if not _GLOB_CHARACTERS.intersection(text):
                yield text


def _replace_references(value: Any, base: Path, paths: Paths) -> Any:
    """Return values with their references replaced; a file that can't be read counts as empty."""

    def read_reference(kind: str, name: str, _keys: KeyPath) -> str:
        if kind == "env":
            return read_variable(name, os.environ)
        try:
            return (
                read_start(base / paths.expand_home(name), CONFIG_BYTES.value)
                .decode("utf-8-sig", "replace")
                .strip()
            )
        except (OSError, ValueError):
            return ""

    return map_references(value, read_reference)


def _add_plugins(reader: _ContentReader, paths: Paths, file: Path, values: Any) -> None:
    """Add the plugins that are named by a path: a file, or a folder with all its files."""
    entries = values.get("plugin") if is_object(values) else None
    for entry in entries if is_list(entries) else ():
        path = get_plugin_path(get_plugin_name(entry) or "", file.parent, paths)
        if path is None or not path.is_relative_to(reader.root) or "\0" in str(path):
            continue
        reader.add_program(path)
        for listing in list_marketplace_files(path):
            if listing.is_relative_to(reader.root):
                reader.add_program(listing)
        for top, folders, names in os.walk(path):
            folders[:] = sorted(set(folders) - {".git", "__pycache__"})
            for name in sorted(names):
                reader.add_program(Path(top, name))


def _list_variable_files(forms: Iterable[Any]) -> Iterator[str]:
    """Yield the files of variables that servers name: a variable may name code to load."""
    for form in forms:
        for row in _list_command_rows(form):
            for key in ("envFile", "env_file"):
                if isinstance(row.get(key), str):
                    yield re.sub(_WORKSPACE_VARIABLE, "", row[key])


def _list_command_rows(values: Any) -> Iterator[dict[str, Any]]:
    """Yield the entries of what codeloop starts without asking."""
    sections = [values.get(name) for name in _COMMAND_SECTIONS] if is_object(values) else []
    # Servers may also stand one level deeper, in `mcp.servers` or `mcp.mcpServers`, or in a list.
    sections += [
        section[name]
        for section in sections
        if is_object(section)
        for name in ("servers", "mcpServers")
        if name in section
    ]
    for rows in sections:
        for row in rows.values() if is_object(rows) else rows if is_list(rows) else ():
            if is_object(row):
                yield row


def _list_command_words(values: Any) -> Iterator[str]:
    """Yield the words of commands that codeloop starts without asking: each may
    be a path of the project.
    """
    for row in _list_command_rows(values):
        folder = row.get("cwd")
        for text in iterate_texts([row.get("command"), row.get("args")]):
            # `python -m a.b` runs a/b.py or a/b/__main__.py;
            # a path may also follow in `--option=path`.
            module = text.replace(".", "/")
            for word in (
                *text.split(),
                text.rpartition("=")[2],
                f"{module}.py",
                f"{module}/__main__.py",
            ):
                yield (
                    f"{folder}/{word}"
                    if isinstance(folder, str) and not word.startswith("/")
                    else word
                )


def _read_hook_words(
    reader: _ContentReader, paths: Paths, file: Path, values: Any
) -> Iterator[str]:
    """Yield the words of the commands in `hooks`;
    if `hooks` names a file, add that file and read it.
    """
    hooks = values.get("hooks") if is_object(values) else None
    if isinstance(hooks, str):
        path = Path(os.path.normpath(file.parent / paths.expand_home(hooks)))
        hooks = None
        if path.is_relative_to(reader.root) and (data := reader.add(path)) is not None:
            with suppress(JsoncError, UnicodeDecodeError):
                hooks = parse_jsonc(data.decode("utf-8-sig"), depth=CONFIG_DEPTH.value).value
    for text in iterate_texts(hooks):
        line = re.sub(_PROJECT_VARIABLE, str(reader.root), text)
        words = [
            *re.findall(_COMMAND_WORD, line),
            *(quoted[1:-1] for quoted in re.findall(_QUOTED_TEXT, line)),
        ]
        for folder in ("", *(f"{folder}/" for folder in re.findall(_CD_FOLDER, line))):
            # As above, a word may be the name of a Python module.
            for word in words:
                module = word.replace(".", "/")
                yield from (
                    f"{folder}{each}" for each in (word, f"{module}.py", f"{module}/__main__.py")
                )
