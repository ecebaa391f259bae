"""Reads marketplaces of Claude Code: folders that list plugins,
each in a folder of its own or defined in the list itself.
"""

from pathlib import Path
from typing import Any

from msgspec import Struct

from codeloop.config.paths import MARKETPLACE, list_marketplace_files
from codeloop.kit.jsonc import JsoncError, is_list, is_object, parse_jsonc
from codeloop.kit.small_files import read_start
from codeloop.schema.limits import CONFIG_BYTES
from codeloop.schema.wire import JSON


class ListedPlugin(Struct, frozen=True):
    """A plugin in a marketplace's list. `folder`: where it is;
    None: somewhere else, at `source`. `entry`: what the list says of it.
    """

    name: str
    folder: Path | None
    source: str
    entry: JSON


def read_marketplace(folder: Path) -> list[ListedPlugin] | None:
    """Return the plugins of a marketplace's folder; None: it is no marketplace."""
    data = _read_list(folder / MARKETPLACE)
    if data is None:
        return None
    metadata: Any = data.get("metadata")
    base = metadata.get("pluginRoot") if is_object(metadata) else None
    root = folder / base if isinstance(base, str) else folder
    plugins: Any = data.get("plugins")
    return [
        _read_entry(root, each)
        for each in (plugins if is_list(plugins) else [])
        if is_object(each) and isinstance(each.get("name"), str)
    ]


def _read_list(file: Path) -> JSON | None:
    try:
        value = parse_jsonc(read_start(file, CONFIG_BYTES.value).decode()).value
    except (OSError, UnicodeDecodeError, JsoncError):
        return None
    return value if is_object(value) else None


def _read_entry(root: Path, entry: JSON) -> ListedPlugin:
    source = entry.get("source", ".")
    if isinstance(source, str):
        return ListedPlugin(entry["name"], (root / source).resolve(), "", entry)
    place = source if is_object(source) else {}
    address = place.get("url") or place.get("repo") or place.get("package") or "elsewhere"
    inside = f", folder {place['path']}" if isinstance(place.get("path"), str) else ""
    return ListedPlugin(entry["name"], None, f"{address}{inside}", entry)


def find_listing(folder: Path) -> JSON:
    """Return what the marketplace around a plugin's folder says of the plugin; {}: there is none,
    or it does not list it.
    """
    resolved = folder.resolve()
    for file in list_marketplace_files(resolved):
        if file.is_file():
            listed = read_marketplace(file.parent.parent) or []
            return next((each.entry for each in listed if each.folder == resolved), JSON())
    return {}
