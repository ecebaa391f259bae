"""Reads the files of a project that take effect once it is trusted: trust holds only for their present contents."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.config.paths import Paths, get_plugin_name, get_plugin_path
from codeloop.config.references import REFERENCE_PATTERN, read_variable
from codeloop.config.sources import PROJECT_CONFIG_FOLDERS, PROJECT_FILES
from codeloop.kit.jsonc import JsoncError, is_list, is_object, iterate_texts, parse_jsonc
from codeloop.kit.small_files import open_regular, read_start
from codeloop.schema.limits import CONFIG_BYTES, CONFIG_DEPTH, TRUST_BYTES, TRUST_FILES

# The folders below a project whose files take effect, by the folders that may contain them.
PAGE_FOLDERS = frozenset(("agent", "agents", "mode", "modes", "command", "commands"))
SKILL_FOLDERS = frozenset(("skill", "skills"))
CODELOOP_HOMES = (".opencode", ".codeloop")
SKILL_HOMES = (".claude", ".agents")
CLAUDE_HOMES = (".claude",)
CLAUDE_PAGE_FOLDERS = frozenset(("agents", "commands"))
PROGRAM_FOLDERS = frozenset(("plugin", "plugins", "tool", "tools"))
_ALL_HOMES = frozenset((*CODELOOP_HOMES, *SKILL_HOMES))
_INSTRUCTION_FILE_NAMES = ("AGENTS.md", "CLAUDE.md")
_COMMAND_SECTIONS = ("mcp", "lsp", "formatter")
"""Sections of the configuration whose `command` codeloop starts without asking."""
_PROJECT_VARIABLE = re.compile(r"""["']?\$\{?(?:CLAUDE|CODELOOP)_PROJECT_DIR\}?["']?""")
_COMMAND_WORD = re.compile(r"""[^\s"'`;|&()<>=$]+""")
_QUOTED_TEXT = re.compile(r"""'[^']*'|"[^"]*\"""")
_CD_FOLDER = re.compile(r"""\bcd\s+["']?([^\s"'`;|&()<>=$]+)""")
_GLOB_CHARACTERS = frozenset("*?[")
# The content of a file that exists and can't be read: if it becomes readable, that is a change.
_UNREADABLE_CONTENT = b"\0unreadable"
# A larger program is not hashed; hashing so many bytes takes a tenth of a second.
_MAX_HASHED_SIZE = 256 * 1024 * 1024


class TooManyFiles(Exception):
    """A project has too many or too large files to be compared; the message is the path that exceeded the limit."""


class TrustedContents(Struct, frozen=True):
    """The contents of the files, by path relative to the work tree's top.

    `files`: configuration, agents, commands, skills, plugins and tools, and files that the configuration names:
    instructions, and programs that codeloop starts.
    `hidden`: files that may hold secrets, and are never shown: those that `{file:..}` names, or links lead out to.
    `named`: the paths that a configuration file names, by the path of that file.
    """

    files: dict[str, bytes] = struct_field(default_factory=dict[str, bytes])
    hidden: dict[str, bytes] = struct_field(default_factory=dict[str, bytes])
    named_paths: dict[str, set[str]] = struct_field(default_factory=dict[str, set[str]])

    def compute_digests(self) -> dict[str, str]:
        """Return the SHA-256 of each file's content, by path."""
        from hashlib import sha256

        return {path: sha256(data).hexdigest() for path, data in sorted((self.files | self.hidden).items())}


def read_contents(paths: Paths, root: Path, directory: Path) -> TrustedContents:
    """Read the files that take effect in a directory: those of the work tree's folders from `root` down to it.

    Both paths are resolved. Blocks while it reads. Raises TooManyFiles.
    """
    reading = _ContentReader(root)
    for step in _list_folders(root, directory):
        for file in _list_config_files(step):
            if (data := reading.add(file)) is not None:
                _read_named_files(reading, paths, directory, file, data)
        for file in _list_extension_files(step):
            reading.add(file)
        # The text of instructions is only data, but a link may lead to any file of the user.
        for name in _INSTRUCTION_FILE_NAMES:
            if (step / name).is_symlink() and not reading.is_inside(step / name):
                reading.add(step / name)
    return reading.contents


def is_in_view(path: str, root: Path, directory: Path) -> bool:
    """Return whether `read_contents` would read a stored path for a directory if the file existed."""
    folders = Path(path).parent.parts
    at = next((at for at, part in enumerate(folders) if part in _ALL_HOMES), len(folders))
    return root.joinpath(*folders[:at]) in _list_folders(root, directory)


def encode_path(root: Path, file: Path) -> str:
    """Return a path relative to the work tree's top as it is stored: bytes that are not UTF-8 are escaped."""
    return str(file.relative_to(root)).encode("utf-8", "backslashreplace").decode()


def _list_folders(root: Path, directory: Path) -> list[Path]:
    steps = [root]
    for part in directory.relative_to(root).parts:
        steps.append(steps[-1] / part)
    return steps


class _ContentReader:
    """Reads files into `contents`, up to a limit of their total size."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.contents = TrustedContents()
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
        if self._remaining_bytes < 0 or len(data) > CONFIG_BYTES.value or len(self.contents.files) >= TRUST_FILES.value:
            raise TooManyFiles(key)
        (self.contents.hidden if is_hidden or not self.is_inside(file) else self.contents.files)[key] = data
        return data

    def add_program(self, file: Path) -> None:
        """Add a program; of a large one, its digest; of a very large one, the size and times that change with it."""
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
            state = os.fstat(descriptor)
            if state.st_size > _MAX_HASHED_SIZE:
                # A program can't forge the change time of an inode.
                row = (state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)
                self.contents.hidden[key] = repr(row).encode()
                return
            with os.fdopen(descriptor, "rb", closefd=False) as program:
                self.contents.hidden[key] = file_digest(program, "sha256").digest()

    def is_inside(self, file: Path) -> bool:
        """Return whether a file is in the work tree, links followed."""
        return Path(os.path.realpath(file)).is_relative_to(self.root)


def _list_config_files(step: Path) -> Iterator[Path]:
    yield from (step / name for name in PROJECT_FILES)
    yield from (step / folder / name for folder, names in PROJECT_CONFIG_FOLDERS for name in names)


def _list_extension_files(step: Path) -> Iterator[Path]:
    for home in (*SKILL_HOMES, *CODELOOP_HOMES):
        try:
            present = {each.name for each in (step / home).iterdir()}
        except OSError:
            continue
        for name in sorted(present & SKILL_FOLDERS):
            yield from (file for file in _list_files(step / home / name) if file.name == "SKILL.md")
        kinds = (
            PAGE_FOLDERS | PROGRAM_FOLDERS
            if home in CODELOOP_HOMES
            else CLAUDE_PAGE_FOLDERS
            if home in CLAUDE_HOMES
            else frozenset[str]()
        )
        for name in sorted(present & kinds):
            yield from _list_files(step / home / name)


def _list_files(folder: Path) -> Iterator[Path]:
    entries = 0
    for top, folders, files in os.walk(folder):
        entries += len(folders) + len(files)
        if entries > TRUST_FILES.value:
            raise TooManyFiles(str(folder))
        yield from (Path(top, name) for name in files)


def _read_named_files(reading: _ContentReader, paths: Paths, directory: Path, file: Path, data: bytes) -> None:
    """Add the files of the work tree that a configuration file names: references, instructions, programs.

    Files outside the work tree are left out: they are the user's, and the project can't change them.
    """
    try:
        values = parse_jsonc(data.decode("utf-8-sig"), depth=CONFIG_DEPTH.value).value
    except (JsoncError, UnicodeDecodeError):
        return
    expanded = _replace_references(values, file.parent, paths)
    forms = [values] if expanded == values else [values, expanded]
    entries: list[Any] = [each.get("instructions") for each in forms if is_object(each)]
    texts = [
        each
        for each in iterate_texts([each for each in entries if is_list(each)])
        if not _GLOB_CHARACTERS.intersection(each)
    ]
    steps = _list_folders(reading.root, directory)
    targets = [(step / paths.expand_home(text), False) for text in texts for step in steps]
    targets += [
        (file.parent / paths.expand_home(match[2].strip()), True)
        for text in iterate_texts(values)
        for match in REFERENCE_PATTERN.finditer(text)
        if match[1] == "file"
    ]
    names = reading.contents.named_paths.setdefault(encode_path(reading.root, file), set())
    for each, is_hidden in targets:
        plain = Path(os.path.normpath(each))
        # No file name has a NUL character, and the functions of the system raise ValueError for it.
        if plain.is_relative_to(reading.root) and "\0" not in str(plain):
            names.add(encode_path(reading.root, plain))
            reading.add(plain, is_hidden=is_hidden)
    for form in forms:
        _add_plugins(reading, paths, file, form)
        for word in (*_list_command_words(form), *_read_hook_commands(reading, paths, file, form)):
            for step in steps:
                plain = Path(os.path.normpath(step / paths.expand_home(word)))
                if plain.is_relative_to(reading.root) and "\0" not in word:
                    reading.add_program(plain)


def _replace_references(value: Any, base: Path, paths: Paths) -> Any:
    """Return values with their references replaced: a reference may be part of a program's name."""

    def content(match: re.Match[str]) -> str:
        name = match[2].strip()
        if match[1] == "env":
            return read_variable(name, os.environ)
        try:
            return read_start(base / paths.expand_home(name), CONFIG_BYTES.value).decode("utf-8-sig", "replace").strip()
        except (OSError, ValueError):
            return ""

    if isinstance(value, str):
        return REFERENCE_PATTERN.sub(content, value)
    if is_object(value):
        return {key: _replace_references(each, base, paths) for key, each in value.items()}
    return [_replace_references(each, base, paths) for each in value] if is_list(value) else value


def _add_plugins(reading: _ContentReader, paths: Paths, file: Path, values: Any) -> None:
    """Add the plugins that are named by a path: a file, or a folder with all its files."""
    entries = values.get("plugin") if is_object(values) else None
    for entry in entries if is_list(entries) else ():
        path = get_plugin_path(get_plugin_name(entry) or "", file.parent, paths)
        if path is None or not path.is_relative_to(reading.root) or "\0" in str(path):
            continue
        reading.add_program(path)
        for top, folders, names in os.walk(path):
            folders[:] = sorted(set(folders) - {".git", "__pycache__"})
            for name in sorted(names):
                reading.add_program(Path(top, name))


def _list_command_words(values: Any) -> Iterator[str]:
    """Yield the words of commands that codeloop starts without asking: each may be a path of the project."""
    for section in _COMMAND_SECTIONS:
        rows = values.get(section) if is_object(values) else None
        for row in rows.values() if is_object(rows) else ():
            command = row.get("command") if is_object(row) else None
            folder = row.get("cwd") if is_object(row) else None
            for text in iterate_texts(command):
                # `python -m a.b` runs a/b.py or a/b/__main__.py; a path may also follow in `--option=path`.
                module = text.replace(".", "/")
                for word in (*text.split(), text.rpartition("=")[2], f"{module}.py", f"{module}/__main__.py"):
                    yield f"{folder}/{word}" if isinstance(folder, str) and not word.startswith("/") else word


def _read_hook_commands(reading: _ContentReader, paths: Paths, file: Path, values: Any) -> Iterator[str]:
    """Yield the words of the commands in `hooks`; if `hooks` names a file, add that file and read it."""
    hooks = values.get("hooks") if is_object(values) else None
    if isinstance(hooks, str):
        path = Path(os.path.normpath(file.parent / paths.expand_home(hooks)))
        hooks = None
        if path.is_relative_to(reading.root) and (data := reading.add(path)) is not None:
            with suppress(JsoncError, UnicodeDecodeError):
                hooks = parse_jsonc(data.decode("utf-8-sig"), depth=CONFIG_DEPTH.value).value
    for text in iterate_texts(hooks):
        line = _PROJECT_VARIABLE.sub(str(reading.root), text)
        words = [*_COMMAND_WORD.findall(line), *(quoted[1:-1] for quoted in _QUOTED_TEXT.findall(line))]
        for folder in ("", *(f"{folder}/" for folder in _CD_FOLDER.findall(line))):
            # As above, a word may be the name of a Python module.
            for word in words:
                module = word.replace(".", "/")
                yield from (f"{folder}{each}" for each in (word, f"{module}.py", f"{module}/__main__.py"))
