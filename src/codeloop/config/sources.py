"""Reads the layers of configuration from their files and variables, in ascending precedence."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from codeloop.config.files import read_text
from codeloop.config.paths import Paths
from codeloop.config.project_root import ProjectRoot
from codeloop.kit.jsonc import Document, JsoncError, Keys, Position, is_object, parse
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_BYTES, CONFIG_DEPTH
from codeloop.schema.wire import JSON

REFERENCE_FILES = ("config.json", "opencode.json", "opencode.jsonc")
PROJECT_FILES = ("opencode.json", "opencode.jsonc", "codeloop.json", "codeloop.jsonc")
OWN_FILES = ("codeloop.json", "codeloop.jsonc")
FOLDERS = ((".opencode", ("opencode.json", "opencode.jsonc")), (".codeloop", OWN_FILES))


class Layer(Struct, frozen=True):
    """One source, unprocessed.

    `source` is a file's path or a variable's name; `base` is the folder that `{file:..}` starts from.
    """

    name: str
    source: str
    base: Path
    document: Document
    is_project: bool = False

    @property
    def raw(self) -> JSON:
        """The object in the source."""
        return self.document.value

    def position(self, keys: Keys, *, of_key: bool = False) -> Position | None:
        """Return line and column of a value of `raw` (or of its key); None if the layer has no text."""
        return self.document.position(keys, of_key=of_key) if self.document.text else None

    def place(self, keys: Keys, *, of_key: bool = False) -> str:
        """Return `source:line:column` of a value of `raw`."""
        position = self.position(keys, of_key=of_key)
        return f"{self.source}:{position}" if position else self.source


class Origin(Struct, frozen=True):
    """The layer that set a value; `keys` lead to it in that layer."""

    layer: Layer
    keys: Keys = ()

    @property
    def position(self) -> Position | None:
        """Line and column, None when the layer is no text."""
        return self.layer.position(self.keys)

    @property
    def raw(self) -> Any:
        """The value as it is in its layer, references not replaced; None where it has another form there."""
        value: Any = self.layer.raw
        try:
            for key in self.keys:
                value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
        return value

    def __str__(self) -> str:
        """Return `source:line:column`."""
        return self.layer.place(self.keys)


class ExtraLayers(Struct, frozen=True):
    """Layers that are not configuration files.

    `ignored`: those of an untrusted project; `warnings`: one line each. They come right after the files
    of their layer, "global" or "project".
    """

    layers: tuple[Layer, ...] = ()
    ignored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    distrust: str | None = None
    """Why the project is not trusted any more; None: it never was."""


NO_EXTRA_LAYERS = ExtraLayers()


def format_keys(keys: Keys) -> str:
    """Format a path of keys: `a.b[0]["x.y"]`. Unsafe characters are escaped."""
    text = ""
    for key in keys:
        if isinstance(key, int):
            text += f"[{key}]"
        elif key and all(char.isalnum() or char in "_-$/@" for char in key) and key.isprintable():
            text += f".{key}" if text else key
        else:
            text += f"[{key!r}]" if key.isprintable() else f"[{key!a}]"
    return text


def find_layers(
    project_root: ProjectRoot,
    paths: Paths,
    *,
    config_file: Path | None,
    environment: Mapping[str, str],
    command_line: JSON,
    links_out: list[str] | None = None,
) -> Iterator[Layer]:
    """Read every layer above the built-in one, in order. Raises CodeloopError for one that can't be read.

    `links_out`: the project is not trusted, so that its files that are links out of it are not read but added there.
    """
    yield from _files("global", paths.reference, REFERENCE_FILES)
    yield from _files("global", paths.config, OWN_FILES)
    yield from _read_named_sources(project_root, config_file, environment)
    steps = _steps(project_root)
    project_files = [step / name for step in steps for name in PROJECT_FILES]
    project_files += [step / folder / name for step in steps for folder, names in FOLDERS for name in names]
    for file in project_files:
        if links_out is not None and _leads_out(file, project_root.root):
            links_out.append(str(file.relative_to(project_root.root)))
        elif (layer := _file("project", file, is_project=True)) is not None:
            yield layer
    if command_line:
        yield Layer("command line", "the command line", project_root.directory, Document("", command_line))


def _leads_out(file: Path, root: Path) -> bool:
    """Return whether a file exists that is, links followed, outside of `root` (a resolved path)."""
    real = os.path.realpath(file)
    return os.path.lexists(file) and not Path(real).is_relative_to(root)


def candidates(
    project_root: ProjectRoot, paths: Paths, *, config_file: Path | None, environment: Mapping[str, str]
) -> Iterator[Path]:
    """Return every file and folder that a layer may come from, whether it exists or not."""
    yield from (paths.reference / name for name in REFERENCE_FILES)
    yield from (paths.config / name for name in OWN_FILES)
    if named_file := _find_named_file(config_file, environment):
        yield project_root.directory / named_file
    for step in _steps(project_root):
        yield from (step / name for name in PROJECT_FILES)
        for folder, names in FOLDERS:
            yield from (step / folder, *(step / folder / name for name in names))


def _steps(project_root: ProjectRoot) -> list[Path]:
    steps = [project_root.root]
    for part in project_root.directory.relative_to(project_root.root).parts:
        steps.append(steps[-1] / part)
    return steps


def _find_named_file(config_file: Path | None, environment: Mapping[str, str]) -> str | None:
    return str(config_file) if config_file else environment.get("CODELOOP_CONFIG") or environment.get("OPENCODE_CONFIG")


def _read_named_sources(
    project_root: ProjectRoot, config_file: Path | None, environment: Mapping[str, str]
) -> Iterator[Layer]:
    """Read the layers that the user names at the start: a file, and texts in the environment."""
    named_file = _find_named_file(config_file, environment)
    if named_file:
        file = project_root.directory / named_file
        layer = _file("--config" if config_file else "environment", file)
        if layer is None:
            raise CodeloopError(f"The configuration file {file} does not exist. Check --config and CODELOOP_CONFIG.")
        yield layer
    for name in ("OPENCODE_CONFIG_CONTENT", "CODELOOP_CONFIG_CONTENT"):
        if text := environment.get(name):
            printable = text.encode(errors="surrogateescape").decode(errors="replace")
            yield _layer("environment", name, project_root.directory, printable)


def _files(name: str, folder: Path, files: tuple[str, ...]) -> Iterator[Layer]:
    for file in files:
        layer = _file(name, folder / file)
        if layer is not None:
            yield layer


def _file(name: str, file: Path, *, is_project: bool = False) -> Layer | None:
    text = read_text(file, CONFIG_BYTES.value)
    return None if text is None else _layer(name, str(file), file.parent, text, is_project=is_project)


def _layer(name: str, source: str, base: Path, text: str, *, is_project: bool = False) -> Layer:
    try:
        document = parse(text, depth=CONFIG_DEPTH.value)
    except JsoncError as error:
        raise CodeloopError(f"{source}:{error.position}: {error}.") from error
    layer = Layer(name, source, base, document, is_project)
    if not is_object(document.value):
        raise CodeloopError(f"{layer.place(())}: expected an object in braces.")
    return layer
