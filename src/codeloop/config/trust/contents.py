"""The files of a project that take effect once it is trusted: trust is bound to their contents."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.config.paths import Paths, plugin_name, plugin_path
from codeloop.config.sources import FOLDERS, PROJECT_FILES
from codeloop.config.substitute import REFERENCE, variable
from codeloop.kit.jsonc import JsoncError, is_list, is_object, iterate_texts, parse
from codeloop.kit.small_files import open_regular, read_start
from codeloop.schema.limits import CONFIG_BYTES, CONFIG_DEPTH, TRUST_BYTES, TRUST_FILES

PAGES = frozenset(("agent", "agents", "mode", "modes", "command", "commands"))
SKILLS = frozenset(("skill", "skills"))
OWN_HOMES = (".opencode", ".codeloop")
SKILL_HOMES = (".claude", ".agents")
CLAUDE_HOMES = (".claude",)
CLAUDE_PAGES = frozenset(("agents", "commands"))
PROGRAMS = frozenset(("plugin", "plugins", "tool", "tools"))
_HOMES = frozenset((*OWN_HOMES, *SKILL_HOMES))
_INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md")
_STARTED = ("mcp", "lsp", "formatter")
"""Sections of the configuration whose `command` we start."""
_PROJECT = re.compile(r"""["']?\$\{?(?:CLAUDE|CODELOOP)_PROJECT_DIR\}?["']?""")
_WORD = re.compile(r"""[^\s"'`;|&()<>=$]+""")
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
_FOLDER = re.compile(r"""\bcd\s+["']?([^\s"'`;|&()<>=$]+)""")
_MAGIC = frozenset("*?[")
_UNREADABLE = b"\0unreadable"
_LARGEST_HASHED = 256 * 1024 * 1024  # bytes, a tenth of a second of hashing


class TooManyFiles(Exception):
    """A project has more files, or larger ones, than are compared; the message is the path where that was seen."""


class TrustedContents(Struct, frozen=True):
    """The contents of the files, by path relative to the work tree's top.

    `files`: configuration, agents, commands, skills, plugins, tools, and what the configuration names: instructions,
    programs that we start.
    `hidden`: what may be a secret and is never shown: what `{file:..}` names, and whatever links lead out to.
    `named`: the paths that each configuration file names.
    """

    files: dict[str, bytes] = struct_field(default_factory=dict[str, bytes])
    hidden: dict[str, bytes] = struct_field(default_factory=dict[str, bytes])
    named: dict[str, set[str]] = struct_field(default_factory=dict[str, set[str]])

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of what each file held."""
        from hashlib import sha256

        return {path: sha256(data).hexdigest() for path, data in sorted((self.files | self.hidden).items())}


def read_contents(paths: Paths, root: Path, directory: Path) -> TrustedContents:
    """Read what counts from a work tree's top down to a directory in it. Both are resolved. Blocks.

    Raises TooManyFiles.
    """
    reading = _Reading(root)
    for step in _steps(root, directory):
        for file in _list_config_files(step):
            if (data := reading.take(file)) is not None:
                _take_named(reading, paths, directory, file, data)
        for file in _extensions(step):
            reading.take(file)
        for name in _INSTRUCTIONS:  # the texts are data; where a link leads is not
            if (step / name).is_symlink() and not reading.is_inside(step / name):
                reading.take(step / name)
    return reading.found


def is_in_view(path: str, root: Path, directory: Path) -> bool:
    """Return whether a stored path would be found again from a directory if it was still there."""
    folders = Path(path).parent.parts
    at = next((at for at, part in enumerate(folders) if part in _HOMES), len(folders))
    return root.joinpath(*folders[:at]) in _steps(root, directory)


def encode_path(root: Path, file: Path) -> str:
    """Return a path relative to the work tree's top as it is stored: bytes that are no characters are written out."""
    return str(file.relative_to(root)).encode("utf-8", "backslashreplace").decode()


def _steps(root: Path, directory: Path) -> list[Path]:
    steps = [root]
    for part in directory.relative_to(root).parts:
        steps.append(steps[-1] / part)
    return steps


class _Reading:
    """What was read so far, and what may still be."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.found = TrustedContents()
        self._room = TRUST_BYTES.value

    def take(self, file: Path, *, is_hidden: bool = False) -> bytes | None:
        """Note and return what a file of the work tree holds; None when it is not there."""
        key = encode_path(self.root, file)
        try:
            data = read_start(file, CONFIG_BYTES.value + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError):
            data = _UNREADABLE
        self._room -= len(data) + len(key)
        if self._room < 0 or len(data) > CONFIG_BYTES.value or len(self.found.files) >= TRUST_FILES.value:
            raise TooManyFiles(key)
        (self.found.hidden if is_hidden or not self.is_inside(file) else self.found.files)[key] = data
        return data

    def take_program(self, file: Path) -> None:
        """Note a program: of a large one, what distinguishes it from others."""
        try:
            is_large = file.stat().st_size > CONFIG_BYTES.value
        except (OSError, ValueError):
            return
        if not file.is_file():
            return
        if not is_large:
            self.take(file)
            return
        from hashlib import file_digest

        key = encode_path(self.root, file)
        with suppress(OSError), open_regular(file) as descriptor:
            state = os.fstat(descriptor)
            if state.st_size > _LARGEST_HASHED:
                # Nobody can set back the time of the inode.
                row = (state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)
                self.found.hidden[key] = repr(row).encode()
                return
            with os.fdopen(descriptor, "rb", closefd=False) as program:
                self.found.hidden[key] = file_digest(program, "sha256").digest()

    def is_inside(self, file: Path) -> bool:
        """Return whether a file is in the work tree, links followed."""
        return Path(os.path.realpath(file)).is_relative_to(self.root)


def _list_config_files(step: Path) -> Iterator[Path]:
    yield from (step / name for name in PROJECT_FILES)
    yield from (step / folder / name for folder, names in FOLDERS for name in names)


def _extensions(step: Path) -> Iterator[Path]:
    for home in (*SKILL_HOMES, *OWN_HOMES):
        try:
            present = {each.name for each in (step / home).iterdir()}
        except OSError:
            continue
        for name in sorted(present & SKILLS):
            yield from (file for file in _list_files(step / home / name) if file.name == "SKILL.md")
        kinds = PAGES | PROGRAMS if home in OWN_HOMES else CLAUDE_PAGES if home in CLAUDE_HOMES else frozenset[str]()
        for name in sorted(present & kinds):
            yield from _list_files(step / home / name)


def _list_files(folder: Path) -> Iterator[Path]:
    entries = 0
    for top, folders, files in os.walk(folder):
        entries += len(folders) + len(files)
        if entries > TRUST_FILES.value:
            raise TooManyFiles(str(folder))
        yield from (Path(top, name) for name in files)


def _take_named(reading: _Reading, paths: Paths, directory: Path, file: Path, data: bytes) -> None:
    """Take the files of the work tree that a configuration file names, as the text of a value and as instructions.

    A file elsewhere is the user's own: nobody else can change it, and its name is in what was trusted.
    """
    try:
        values = parse(data.decode("utf-8-sig"), depth=CONFIG_DEPTH.value).value
    except (JsoncError, UnicodeDecodeError):
        return
    filled = _substitute(values, file.parent, paths)
    forms = [values] if filled == values else [values, filled]
    entries: list[Any] = [each.get("instructions") for each in forms if is_object(each)]
    texts = [
        each for each in iterate_texts([each for each in entries if is_list(each)]) if not _MAGIC.intersection(each)
    ]
    steps = _steps(reading.root, directory)
    targets = [(step / paths.expand(text), False) for text in texts for step in steps]
    targets += [
        (file.parent / paths.expand(match[2].strip()), True)
        for text in iterate_texts(values)
        for match in REFERENCE.finditer(text)
        if match[1] == "file"
    ]
    names = reading.found.named.setdefault(encode_path(reading.root, file), set())
    for each, is_hidden in targets:
        plain = Path(os.path.normpath(each))
        if plain.is_relative_to(reading.root) and "\0" not in str(plain):
            names.add(encode_path(reading.root, plain))
            reading.take(plain, is_hidden=is_hidden)
    for form in forms:
        _take_plugins(reading, paths, file, form)
        for word in (*_programs(form), *_read_hook_commands(reading, paths, file, form)):
            for step in steps:
                plain = Path(os.path.normpath(step / paths.expand(word)))
                if plain.is_relative_to(reading.root) and "\0" not in word:
                    reading.take_program(plain)


def _substitute(value: Any, base: Path, paths: Paths) -> Any:
    """Return values with their references replaced: the name of a program may be made of them."""

    def content(match: re.Match[str]) -> str:
        name = match[2].strip()
        if match[1] == "env":
            return variable(name, os.environ)
        try:
            return read_start(base / paths.expand(name), CONFIG_BYTES.value).decode("utf-8-sig", "replace").strip()
        except (OSError, ValueError):
            return ""

    if isinstance(value, str):
        return REFERENCE.sub(content, value)
    if is_object(value):
        return {key: _substitute(each, base, paths) for key, each in value.items()}
    return [_substitute(each, base, paths) for each in value] if is_list(value) else value


def _take_plugins(reading: _Reading, paths: Paths, file: Path, values: Any) -> None:
    """Take the files, and all of the folders, that are plugins by their path."""
    entries = values.get("plugin") if is_object(values) else None
    for entry in entries if is_list(entries) else ():
        path = plugin_path(plugin_name(entry) or "", file.parent, paths)
        if path is None or not path.is_relative_to(reading.root) or "\0" in str(path):
            continue
        reading.take_program(path)
        for top, folders, names in os.walk(path):
            folders[:] = sorted(set(folders) - {".git", "__pycache__"})
            for name in sorted(names):
                reading.take_program(Path(top, name))


def _programs(values: Any) -> Iterator[str]:
    """Yield the words of the commands that we start without a question, each of which may be a file of the project."""
    for section in _STARTED:
        rows = values.get(section) if is_object(values) else None
        for row in rows.values() if is_object(rows) else ():
            command = row.get("command") if is_object(row) else None
            folder = row.get("cwd") if is_object(row) else None
            for text in iterate_texts(command):
                module = text.replace(".", "/")
                for word in (*text.split(), text.rpartition("=")[2], f"{module}.py", f"{module}/__main__.py"):
                    yield f"{folder}/{word}" if isinstance(folder, str) and not word.startswith("/") else word


def _read_hook_commands(reading: _Reading, paths: Paths, file: Path, values: Any) -> Iterator[str]:
    """Yield the words of the commands of `hooks`, and take the file that it names."""
    hooks = values.get("hooks") if is_object(values) else None
    if isinstance(hooks, str):
        path = Path(os.path.normpath(file.parent / paths.expand(hooks)))
        hooks = None
        if path.is_relative_to(reading.root) and (data := reading.take(path)) is not None:
            with suppress(JsoncError, UnicodeDecodeError):
                hooks = parse(data.decode("utf-8-sig"), depth=CONFIG_DEPTH.value).value
    for text in iterate_texts(hooks):
        line = _PROJECT.sub(str(reading.root), text)
        words = [*_WORD.findall(line), *(quoted[1:-1] for quoted in _QUOTED.findall(line))]
        for folder in ("", *(f"{folder}/" for folder in _FOLDER.findall(line))):
            for word in words:
                module = word.replace(".", "/")
                yield from (f"{folder}{each}" for each in (word, f"{module}.py", f"{module}/__main__.py"))
