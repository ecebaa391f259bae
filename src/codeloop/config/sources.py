"""Reads the layers of the configuration, each from a file or an environment variable,
in ascending precedence.

`load.py` merges them.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from codeloop.config.files import read_text
from codeloop.config.paths import Paths
from codeloop.config.project_root import ProjectRoot
from codeloop.kit.jsonc import Document, JsoncError, KeyPath, Position, is_object, parse_jsonc
from codeloop.net.hosts import is_offline
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_BYTES, CONFIG_DEPTH
from codeloop.schema.wire import JSON, replace

# In ascending precedence, as in all tables of this module: codeloop's own files come last.
OPENCODE_FILES = ("config.json", "opencode.json", "opencode.jsonc")
PROJECT_FILES = ("opencode.json", "opencode.jsonc", "codeloop.json", "codeloop.jsonc")
CODELOOP_FILES = ("codeloop.json", "codeloop.jsonc")
PROJECT_CONFIG_FOLDERS = (
    (".opencode", ("opencode.json", "opencode.jsonc")),
    (".codeloop", CODELOOP_FILES),
)
"""The folders of a project that may hold configuration files,
each with the names of those files.
"""


class Layer(Struct, frozen=True):
    """The configuration of one source, as it is written there.

    `name`: the kind of the layer: "global", "project", "environment", "--config",
    "variable" (one of OpenCode that means a setting), "command line" or "extensions".
    `source`: the path of its file, or the name of its variable. `base`: the folder that relative
    paths in `{file:..}` are relative to. `notes`: warnings about forms in it that were converted,
    a line each.
    """

    name: str
    source: str
    base: Path
    document: Document
    is_project: bool = False
    notes: tuple[str, ...] = ()

    @property
    def raw(self) -> JSON:
        """The object in the source, whose references are not replaced yet."""
        return self.document.value

    def find_position(self, keys: KeyPath, *, of_key: bool = False) -> Position | None:
        """Return line and column of a value of `raw`, or of its key;
        None: the layer was not parsed from a text.
        """
        return self.document.find_position(keys, of_key=of_key) if self.document.text else None

    def format_location(self, keys: KeyPath, *, of_key: bool = False) -> str:
        """Return `source:line:column` of a value of `raw`, or of its key."""
        position = self.find_position(keys, of_key=of_key)
        return f"{self.source}:{position}" if position else self.source


class Origin(Struct, frozen=True):
    """The layer that set a value, and the value's path of keys in that layer."""

    layer: Layer
    keys: KeyPath = ()

    @property
    def position(self) -> Position | None:
        """Line and column of the value; None: the layer was not parsed from a text."""
        return self.layer.find_position(self.keys)

    @property
    def raw(self) -> Any:
        """The value as its layer has it, with references not replaced;
        None: the layer has it in another form.
        """
        value: Any = self.layer.raw
        try:
            for key in self.keys:
                value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
        return value

    def __str__(self) -> str:
        """Return `source:line:column`."""
        return self.layer.format_location(self.keys)


class ExtraLayers(Struct, frozen=True):
    """Layers that extensions add. Each takes precedence over the configuration files of its kind.

    `ignored`: the names of the layers that an untrusted project would have added.
    `warnings`: one line each.
    """

    layers: tuple[Layer, ...] = ()
    ignored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    distrust: str | None = None
    """Why the project is not trusted any more; None: it is trusted, or never was."""


NO_EXTRA_LAYERS = ExtraLayers()


def format_keys(keys: KeyPath) -> str:
    """Return a path of keys as text, such as `a.b[0]['x.y']`.
    Characters that can't be printed are escaped.
    """
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
    """Yield every layer, in ascending precedence. Raises CodeloopError for one that can't be read.

    `links_out`: given for an untrusted project; those of its files that are links out of it are
    added to this list instead of being read.
    """
    yield from _read_files("global", paths.opencode_config, OPENCODE_FILES)
    yield from _read_files("global", paths.config, CODELOOP_FILES)
    yield from _read_named_sources(project_root, config_file, environment)
    folders = project_root.folders
    project_files = [folder / name for folder in folders for name in PROJECT_FILES]
    project_files += [
        folder / subfolder / name
        for folder in folders
        for subfolder, names in PROJECT_CONFIG_FOLDERS
        for name in names
    ]
    for file in project_files:
        if links_out is not None and _is_link_out(file, project_root.root):
            links_out.append(str(file.relative_to(project_root.root)))
        elif (layer := _read_file("project", file, is_project=True)) is not None:
            yield layer
    if any(name.startswith("OPENCODE_") for name in environment):
        # Imported late: most environments have none.
        from codeloop.config.opencode_variables import read_setting_variables

        # After the files, as in OpenCode: what a variable denies, no project allows.
        for name, settings in read_setting_variables(environment):
            yield Layer("variable", name, project_root.directory, Document("", settings))
    if command_line:
        yield Layer(
            "command line", "the command line", project_root.directory, Document("", command_line)
        )


def _is_link_out(file: Path, root: Path) -> bool:
    """Return whether a file exists and, after following links,
    is outside `root` (a resolved path).
    """
    real = os.path.realpath(file)
    return os.path.lexists(file) and not Path(real).is_relative_to(root)


def list_config_paths(
    project_root: ProjectRoot,
    paths: Paths,
    *,
    config_file: Path | None,
    environment: Mapping[str, str],
) -> Iterator[Path]:
    """Yield every file and folder that a layer may come from, whether it exists or not."""
    yield from (paths.opencode_config / name for name in OPENCODE_FILES)
    yield from (paths.config / name for name in CODELOOP_FILES)
    if named_file := _find_named_file(config_file, environment):
        yield project_root.directory / named_file
    for folder in project_root.folders:
        yield from (folder / name for name in PROJECT_FILES)
        for subfolder, names in PROJECT_CONFIG_FOLDERS:
            yield from (folder / subfolder, *(folder / subfolder / name for name in names))


def _find_named_file(config_file: Path | None, environment: Mapping[str, str]) -> str | None:
    return (
        str(config_file)
        if config_file
        else environment.get("CODELOOP_CONFIG") or environment.get("OPENCODE_CONFIG")
    )


def _read_named_sources(
    project_root: ProjectRoot, config_file: Path | None, environment: Mapping[str, str]
) -> Iterator[Layer]:
    """Yield the layers that the user names at the start: the file of an option or variable,
    and texts of variables.
    """
    named_file = _find_named_file(config_file, environment)
    if named_file:
        file = project_root.directory / named_file
        layer = _read_file("--config" if config_file else "environment", file)
        if layer is None:
            raise CodeloopError(
                f"The configuration file {file} does not exist. Check --config and CODELOOP_CONFIG."
            )
        yield layer
    for name in ("OPENCODE_CONFIG_CONTENT", "CODELOOP_CONFIG_CONTENT"):
        if text := environment.get(name):
            # Python keeps bytes that are not UTF-8 as surrogates, which the parser does not accept.
            printable = text.encode(errors="surrogateescape").decode(errors="replace")
            yield parse_layer("environment", name, project_root.directory, printable)


def _read_files(name: str, folder: Path, files: tuple[str, ...]) -> Iterator[Layer]:
    for file in files:
        layer = _read_file(name, folder / file)
        if layer is not None:
            yield layer


def _read_file(name: str, file: Path, *, is_project: bool = False) -> Layer | None:
    text = read_text(file, CONFIG_BYTES.value)
    return (
        None
        if text is None
        else parse_layer(name, str(file), file.parent, text, is_project=is_project)
    )


def parse_layer(
    name: str, source: str, base: Path, text: str, *, is_project: bool = False
) -> Layer:
    """Return the layer of a text. Raises CodeloopError for one that is not an object."""
    try:
        document = parse_jsonc(text, depth=CONFIG_DEPTH.value)
    except JsoncError as error:
        raise CodeloopError(f"{source}:{error.position}: {error}.") from error
    layer = Layer(name, source, base, document, is_project)
    if not is_object(document.value):
        raise CodeloopError(f"{layer.format_location(())}: expected an object in braces.")
    return _read_servers(layer) if {"mcp", "mcpServers"} & document.value.keys() else layer


def _read_servers(layer: Layer) -> Layer:
    """Return a layer with all its MCP servers as entries of `mcp`, whatever their form is."""
    # Imported late: few configurations have servers.
    from codeloop.config.forms.server_entries import read_servers

    read = read_servers(layer.raw)
    if not read.names and not read.problems and "mcpServers" not in layer.raw:
        return layer
    place = layer.format_location(
        ("mcpServers",) if "mcpServers" in layer.raw else ("mcp",), of_key=True
    )
    notes = [
        f"{place}: MCP servers in the form of other programs, read as those of `mcp`: {', '.join(read.names)}."
    ]
    notes = notes if read.names else []
    notes += [f"{place}: the MCP server {problem}." for problem in read.problems]
    document = replace(layer.document, value=read.raw)
    return replace(layer, document=document, notes=tuple(notes))


def apply_offline_mode(command_line: JSON, environment: Mapping[str, str]) -> JSON:
    """Return the command line's layer; in offline mode it also switches the
    sandbox's network off.
    """
    if not is_offline(environment):
        return command_line
    sandbox = command_line.get("sandbox")
    return {
        **command_line,
        "sandbox": {**(sandbox if is_object(sandbox) else {}), "network": "off"},
    }
