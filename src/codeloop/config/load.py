"""Loads the configuration: `load_config` merges all layers into one frozen `Config`,
with the origin of every value.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec import field as struct_field

from codeloop.config.forms.normalise import NormalisedValues, normalise_layer
from codeloop.config.known_keys import join_names, warn_of_unknown_keys, warn_of_unsupported_keys
from codeloop.config.paths import Paths
from codeloop.config.project_root import ProjectRoot
from codeloop.config.references import REFERENCE_PATTERN, replace_references
from codeloop.config.sources import (
    NO_EXTRA_LAYERS,
    ExtraLayers,
    Layer,
    Origin,
    apply_offline_mode,
    find_layers,
    format_keys,
)
from codeloop.kit.jsonc import KeyPath, is_list, is_object
from codeloop.kit.small_files import FileState
from codeloop.schema.config import Config
from codeloop.schema.errors import CodeloopError
from codeloop.schema.provider_config import OwnEntry, OwnProviders
from codeloop.schema.wire import JSON

_APPEND_KEYS = frozenset(("permission", "restrictions", "hooks"))
"""Lists to which each layer appends."""
_UNION_KEYS = frozenset(("instructions", "plugin"))
"""Lists to which each layer adds the items that are not in them yet."""
_LAYER_DESCRIPTIONS = {
    "global": "your global configuration",
    "project": "this project's configuration",
    "environment": "configuration from the environment",
    "variable": "a variable of OpenCode",
    "--config": "the file of --config",
}
_LAYER_RANKS = {"global": 0, "project": 2, "extensions": 2, "variable": 3, "command line": 3}
"""The rank of layers by name: a layer overrides those of lower ranks.
Layers with other names have rank 1.
"""


class SettingPlace(NamedTuple):
    """Where a setting is written, and what the user does to change it: texts for error messages."""

    place: str
    advice: str


class LoadedConfig(Struct, frozen=True):
    """The effective configuration, and the origin of its values.

    `provenance`: the layer that set each value, by the value's dotted path
    (`provider.x.options.baseURL`, `permission[2]`). `warnings`: one line each. `sources`: the files
    and variables that were read, in order.
    """

    config: Config
    provenance: dict[str, Origin]
    warnings: tuple[str, ...]
    sources: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    """The settings of an untrusted project that were ignored."""
    files: dict[Path, FileState] = struct_field(default_factory=dict[Path, FileState])
    """The files that references and `hooks` name, each with its state when it was read."""
    own_providers: OwnProviders | None = None
    """The user's part of the providers; None: all of it, since no project's layer names any."""
    own_entries: dict[str, OwnEntry] = struct_field(default_factory=dict[str, OwnEntry])
    """The user's part of other services whose address a project names,
    by `search` or `mcp.NAME`.
    """

    def list_origins(self, keys: KeyPath) -> list[Origin]:
        """Return the origins of a setting and of all settings in it;
        of a server, whatever its place in the file is.
        """
        start = format_keys(keys)
        inside = (f"{start}.", f"{start}[")
        return [
            origin
            for path, origin in self.provenance.items()
            if path == start or path.startswith(inside)
        ]

    def describe_origin(self, keys: KeyPath) -> SettingPlace | None:
        """Return the place of a setting, without its value; None: no file or variable sets it."""
        origin = self.provenance.get(format_keys(keys))
        if origin is None or origin.layer.name == "command line":
            return None
        layer = origin.layer
        text = f"{origin} ({_LAYER_DESCRIPTIONS.get(layer.name, layer.name)})"
        references: list[re.Match[str]] = list(
            re.finditer(REFERENCE_PATTERN, origin.raw if isinstance(origin.raw, str) else "")
        )
        if not references:
            return SettingPlace(f"`{keys[-1]}` at {text}", "Correct it there.")
        names = [match[2].strip() for match in references]
        reference = " and ".join(
            f"{{{match[1]}:{name}}}" for match, name in zip(references, names, strict=True)
        )
        if references[0][1] == "env":
            variable = names[0].partition(":-")[0]
            place = f"the environment variable {variable}, by `{reference}` at {text}"
            return SettingPlace(place, f"Set {variable} to another one and start codeloop again.")
        return SettingPlace(
            f"the file {names[0]}, by `{reference}` at {text}", "Put another one into that file."
        )


class _MergedValues(Struct, frozen=True):
    """The values merged so far, and the origin of each by its path of keys."""

    values: JSON = struct_field(default_factory=dict[str, Any])
    origins: dict[KeyPath, Origin] = struct_field(default_factory=dict[KeyPath, Origin])


class _ReadLayers(Struct, frozen=True):
    """What the layers that were read so far hold; `warnings`, `ignored` and `sources`
    as in LoadedConfig.

    `file_states`: its `files`. `values`: those of each layer that is not restricted.
    """

    warnings: list[str]
    ignored: list[str]
    merged: _MergedValues = struct_field(default_factory=_MergedValues)
    sources: list[str] = struct_field(default_factory=list[str])
    file_states: dict[Path, FileState] = struct_field(default_factory=dict[Path, FileState])
    values: list[NormalisedValues] = struct_field(default_factory=list[NormalisedValues])


def load_config(
    project_root: ProjectRoot,
    paths: Paths,
    *,
    config_file: Path | None = None,
    environment: Mapping[str, str],
    command_line: JSON | None = None,
    trusted: bool,
    extra: ExtraLayers = NO_EXTRA_LAYERS,
) -> LoadedConfig:
    """Read and merge all layers. In ascending precedence: global, named by the user, project,
    command line.

    `config_file`: the file of --config. `command_line`: an object in the form of a configuration
    file. Unless `trusted`, the project's layers can only restrict.
    `extra`: layers that extensions add.
    Raises CodeloopError, with file, line and column, for a file that can't be read and
    a value of the wrong type.
    """
    read = _ReadLayers(warnings=list(extra.warnings), ignored=list(extra.ignored))
    links_out: list[str] = []
    files = find_layers(
        project_root,
        paths,
        config_file=config_file,
        environment=environment,
        command_line=apply_offline_mode(command_line or {}, environment),
        links_out=None if trusted else links_out,
    )
    # Sorting is stable, so layers of extensions follow the files of their kind.
    for layer in sorted((*files, *extra.layers), key=lambda layer: _LAYER_RANKS.get(layer.name, 1)):
        _read_layer(read, layer, project_root.root, paths, environment, trusted=trusted)
    merged, warnings, ignored = read.merged, read.warnings, read.ignored
    warnings.extend(warn_of_unsupported_keys([values.layer for values in read.values]))
    ignored.extend(
        f"{path if path.isprintable() else ascii(path)} (a link out of the project)"
        for path in links_out
    )
    if ignored or extra.distrust is not None:
        why = extra.distrust or f"{format_keys((str(project_root.root),))} is not trusted"
        warnings.append(_explain_ignored(why, ignored))
    config = _convert_to_config(merged)
    return LoadedConfig(
        config=config,
        provenance={format_keys(keys): origin for keys, origin in merged.origins.items()},
        warnings=tuple(warnings),
        sources=tuple(read.sources),
        ignored=tuple(dict.fromkeys(ignored)),
        files=read.file_states,
        own_providers=_find_own_providers(read.values, config, merged, project_root.root),
        own_entries=_find_own_entries(read.values, merged, project_root.root),
    )


def _read_layer(
    read: _ReadLayers,
    layer: Layer,
    root: Path,
    paths: Paths,
    environment: Mapping[str, str],
    *,
    trusted: bool,
) -> None:
    """Read a layer, and merge its values into those of the layers before it."""
    merged = read.merged
    read.sources.append(layer.source)
    read.warnings.extend(warn_of_unknown_keys(layer))
    if layer.is_project and not trusted:
        # Imported late: most projects are trusted, or configure nothing.
        from codeloop.config.trust.layer_filter import filter_layer

        # References are not replaced: an untrusted project may not read variables and files.
        values, names = filter_layer(normalise_layer(layer, layer.raw), merged.values)
        read.ignored.extend(names)
    else:
        raw = replace_references(layer, paths, environment, read.file_states)
        values, notes = _read_values(layer, raw, paths, root, read.file_states, trusted=trusted)
        read.warnings.extend((*layer.notes, *notes))
        read.values.append(values)
    _merge_values(merged, merged.values, values, values.values, ())


def _find_own_providers(
    all_values: list[NormalisedValues], config: Config, merged: _MergedValues, root: Path
) -> OwnProviders | None:
    """Return the user's part of the providers,
    by the values of all layers that are not restricted.
    """
    if not any(values.layer.is_project and "provider" in values.values for values in all_values):
        return None
    # Imported late: few projects name providers.
    from codeloop.config.own_settings import find_own_providers

    own = _MergedValues()
    for values in all_values:
        if not values.layer.is_project and "provider" in values.values:
            _merge_values(own, own.values, values, {"provider": values.values["provider"]}, ())
    return find_own_providers(
        _convert_to_config(own).provider, config.provider, merged.origins, root
    )


def _find_own_entries(
    all_values: list[NormalisedValues], merged: _MergedValues, root: Path
) -> dict[str, OwnEntry]:
    """Return the user's part of the services whose address a project names; see LoadedConfig."""
    sections = ("search", "mcp")
    if not any(
        values.layer.is_project and any(map(values.values.get, sections)) for values in all_values
    ):
        return {}
    # Imported late: few projects name services.
    from codeloop.config.own_settings import find_own_entries

    own = _MergedValues()
    for values in all_values:
        if not values.layer.is_project:
            own_values = {name: values.values[name] for name in sections if name in values.values}
            _merge_values(own, own.values, values, own_values, ())
    return find_own_entries(own.values, merged.origins, root)


def _read_values(
    layer: Layer,
    raw: JSON,
    paths: Paths,
    root: Path,
    file_states: dict[Path, FileState],
    *,
    trusted: bool,
) -> tuple[NormalisedValues, list[str]]:
    """Return the values of a layer that is not restricted, and warnings.
    `raw`: its references are already replaced.
    """
    values = normalise_layer(layer, raw)
    warnings = _drop_sandbox_exemptions(layer, values.values) if layer.is_project else []
    if layer.name == "extensions":
        # Imported late: few extensions change the configuration.
        from codeloop.config.trust.layer_filter import restrict_by_rules

        restrict_by_rules(values)
    if "hooks" in values.values:
        # Imported late: most configurations have no hooks.
        from codeloop.config.hook_rows import read_hook_rows

        rows, notes, restrictions = read_hook_rows(
            values, paths, root, file_states, trusted=trusted
        )
        values.values["hooks"] = rows
        if restrictions:
            values.values["restrictions"] = restrictions
            values.source_keys["restrictions",] = ("hooks",)
        warnings += notes
    return values, warnings


def _drop_sandbox_exemptions(layer: Layer, values: JSON) -> list[str]:
    """Drop the settings by which a project exempts programs from the sandbox, shows them secrets,
    or opens its ports.

    Such programs load files of the project, which the agent can edit without asking, so only the
    user may do that. Returns a warning for each setting.
    """
    dropped: list[tuple[str, ...]] = []
    for section in ("lsp", "formatter"):
        rows = values.get(section)
        for name, row in rows.items() if is_object(rows) else ():
            if is_object(row) and row.get("sandbox", True) is not True:
                del row["sandbox"]
                dropped.append((section, name, "sandbox"))
    sandbox = values.get("sandbox")
    if is_object(sandbox):
        # A project may say that no port is reached from outside.
        opening = [key for key in ("variables", "ports") if sandbox.get(key)]
        for key in opening:
            del sandbox[key]
            dropped.append(("sandbox", key))
    return [
        f"{layer.format_location(keys)}: {format_keys(keys)}: ignored, it counts in your own configuration only."
        for keys in dropped
    ]


def _explain_ignored(why: str, names: list[str]) -> str:
    what = f"Ignored: {join_names(list(dict.fromkeys(names)))}. " if names else ""
    return f"{why}, so its configuration can only tighten yours. {what}To use it: codeloop trust"


def _merge_values(
    merged: _MergedValues, into: JSON, source: NormalisedValues, new: JSON, keys: KeyPath
) -> None:
    """Merge `new`, the values of a layer at the path `keys`,
    into the object `into` of the merged values.
    """
    for key, value in new.items():
        path = (*keys, key)
        old = into.get(key)
        if is_list(value) and _is_joined(path):
            into[key] = _append_list(merged, old if is_list(old) else [], source, value, path)
        elif is_object(value) and value:
            if not is_object(old):
                _forget_origins(merged, path, old)
                into[key] = {}
            merged.origins.pop(path, None)
            _merge_values(merged, into[key], source, value, path)
        # An empty object changes nothing in one that is there.
        elif not (is_object(value) and is_object(old)):
            _forget_origins(merged, path, old)
            # An empty object is filled by later layers, so it must not be that of its own one.
            into[key] = {} if is_object(value) else value
            merged.origins[path] = Origin(source.layer, source.find_source_keys(path))


def _is_joined(keys: KeyPath) -> bool:
    """Return whether the list at a path is joined with those of earlier layers;
    other lists replace them.
    """
    if len(keys) == 1:
        return keys[0] in _APPEND_KEYS or keys[0] in _UNION_KEYS
    return len(keys) == 3 and keys[0] == "agent" and keys[2] in _APPEND_KEYS


def _append_list(
    merged: _MergedValues, old: list[Any], source: NormalisedValues, new: list[Any], keys: KeyPath
) -> list[Any]:
    """Return the list of earlier layers with the items of `new` appended: of `_UNION_KEYS`
    only those not in it.
    """
    items = list(old)
    for index, item in enumerate(new):
        if keys[-1] in _APPEND_KEYS or item not in items:
            merged.origins[*keys, len(items)] = Origin(
                source.layer, source.find_source_keys((*keys, index))
            )
            items.append(item)
    return items


def _forget_origins(merged: _MergedValues, keys: KeyPath, old: Any) -> None:
    """Drop the origins of the values inside `old`, the replaced value at the path `keys`."""
    if is_object(old) or is_list(old):
        for inner_keys in [each for each in merged.origins if each[: len(keys)] == keys]:
            del merged.origins[inner_keys]


def _convert_to_config(merged: _MergedValues) -> Config:
    try:
        return msgspec.convert(merged.values, Config)
    except msgspec.ValidationError:
        # Imported late: most configurations fit their types.
        # msgspec's message does not say in which file the value is.
        from codeloop.config.type_errors import find_type_error, locate_value

        keys, fault = find_type_error(merged.values, Config)
        location = locate_value(merged.origins, keys)
        raise CodeloopError(f"{location}: {format_keys(keys)}: {fault}.") from None
