"""Finds the packages that `plugin` in the configuration names: each is a home,
and may add MCP servers and hooks.
"""

from collections.abc import Collection
from pathlib import Path

from msgspec import Struct

from codeloop.config.load import LoadedConfig
from codeloop.config.paths import Paths, get_plugin_name
from codeloop.config.sources import Layer
from codeloop.extend.homes import Home
from codeloop.extend.packages.claude_plugin import ClaudePlugin
from codeloop.extend.packages.manifest import (
    CLAUDE_MANIFEST,
    MANIFEST,
    is_claude_plugin,
    read_manifest,
)
from codeloop.extend.packages.plugin_entries import is_marked_policy, resolve_entry
from codeloop.kit.jsonc import Document
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON


class FoundPackages(Struct, frozen=True):
    """Packages as homes, their configuration layers, and the files that both depend on."""

    homes: tuple[Home, ...] = ()
    layers: tuple[Layer, ...] = ()
    files: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()


def find_packages(loaded: LoadedConfig, root: Path, paths: Paths) -> FoundPackages:
    """Return the packages of a configuration; invalid ones are reported and left out."""
    homes: list[Home] = []
    layers: list[Layer] = []
    files: list[Path] = []
    warnings: list[str] = []
    for index, entry in enumerate(loaded.config.plugin):
        name = get_plugin_name(entry)
        origin = loaded.provenance.get(f"plugin[{index}]")
        if name is None:
            # An invalid entry is reported by `find_extensions`.
            continue
        path, _ = resolve_entry(name, origin.layer.base if origin is not None else root, paths)
        if path is None or not path.is_dir():
            continue
        is_project = origin is not None and origin.layer.is_project
        try:
            manifest = read_manifest(path)
            names = frozenset(each.name for each in path.iterdir())
        except (CodeloopError, OSError) as error:
            warnings.append(f"{error} The package is left out.")
            continue
        is_claude = is_claude_plugin(path)
        manifest_file = path / (CLAUDE_MANIFEST if is_claude else MANIFEST)
        files += [path, manifest_file]
        if manifest is not None:
            homes.append(
                Home(
                    path,
                    names,
                    is_project=is_project,
                    is_foreign=is_claude,
                    is_policy=manifest.policy or is_marked_policy(entry),
                    is_claude=is_claude,
                    prefix=manifest.name if is_claude else "",
                )
            )
            values: JSON = {"mcp": manifest.mcp}
            if is_claude:
                plugin = ClaudePlugin(path, names)
                values = plugin.values
                files += plugin.files
                warnings += plugin.warnings
            layers += _make_layers(
                values, manifest_file, path, loaded.config.mcp.keys(), is_project=is_project
            )
    return FoundPackages(tuple(homes), tuple(layers), tuple(files), tuple(warnings))


def _make_layers(
    values: JSON,
    manifest_file: Path,
    folder: Path,
    reserved_servers: Collection[str],
    *,
    is_project: bool,
) -> list[Layer]:
    """Return the layer of a package's settings; empty: it has none.
    A server with a reserved name is left out.
    """
    servers: JSON = {
        name: entry for name, entry in values.get("mcp", {}).items() if name not in reserved_servers
    }
    layer_values = {name: value for name, value in {**values, "mcp": servers}.items() if value}
    if not layer_values:
        return []
    name = "project" if is_project else "global"
    return [Layer(name, str(manifest_file), folder, Document("", layer_values), is_project)]
