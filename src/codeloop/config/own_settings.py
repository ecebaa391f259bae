"""Finds what of the merged configuration is the user's own,
so that no project sends their keys elsewhere.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from codeloop.config.references import REFERENCE_PATTERN
from codeloop.config.sources import Origin
from codeloop.kit.jsonc import KeyPath, is_object
from codeloop.schema.provider_config import OwnEntry, OwnProviders, ProviderConfig
from codeloop.schema.wire import JSON, replace

_SECTION = "provider"
# An address that is a variable of the user as a whole is one that the user named.
_VARIABLE = r"\{env:[^{}:]+\}"


def find_own_providers(
    own: Mapping[str, ProviderConfig],
    effective: Mapping[str, ProviderConfig],
    origins: Mapping[KeyPath, Origin],
    root: Path,
) -> OwnProviders:
    """Return the user's part of the providers.

    `own`: the providers as the user's layers alone configure them; `effective`: as all do;
    `root`: the project.
    """
    configs = dict(own)
    keys: set[KeyPath] = set()
    for path, origin in origins.items():
        if path[0] != _SECTION:
            continue
        if not origin.layer.is_project or _is_borrowed(origin, root):
            keys.add(path[1:])
        if (
            origin.layer.is_project
            and path[2:] == ("options", "baseURL")
            and re.fullmatch(_VARIABLE, str(origin.raw))
        ):
            name = str(path[1])
            config = configs.get(name) or ProviderConfig()
            url = effective[name].options["baseURL"]
            configs[name] = replace(config, options={**config.options, "baseURL": url})
    return OwnProviders(configs, frozenset(keys))


def find_own_entries(
    own: JSON, origins: Mapping[KeyPath, Origin], root: Path
) -> dict[str, OwnEntry]:
    """Return the user's part of the services whose address a project names,
    by the name `search` or `mcp.NAME`.

    `own`: the values of the user's layers alone. Those without a secret of the user are left out.
    """
    entries: dict[str, OwnEntry] = {}
    search_address = (
        ("search", "baseURL") if ("search", "baseURL") in origins else ("search", "provider")
    )
    for path, origin in origins.items():
        is_address = path == search_address or (
            len(path) == 3 and path[0] == "mcp" and path[2] == "url"
        )
        if (
            not is_address
            or not origin.layer.is_project
            or re.fullmatch(_VARIABLE, str(origin.raw))
        ):
            continue
        values: object = own
        for key in path[:-1]:
            values = values.get(str(key)) if is_object(values) else None
        entry = OwnEntry(values if is_object(values) else {}, "")
        for secret_path, secret in origins.items():
            if secret_path[: len(path) - 1] != path[:-1] or not _is_secret(secret_path):
                continue
            name = str(secret_path[len(path) - 1])
            if not secret.layer.is_project:
                entry = OwnEntry(entry.values, name)
            # A server that is the project's own takes its token from a variable, as everywhere.
            elif path == ("search", "baseURL") and _is_borrowed(secret, root):
                entry = OwnEntry(entry.values, name, is_borrowed=True)
        if entry.secret:
            entries[".".join(map(str, path[:-1]))] = entry
    return entries


def _is_secret(path: KeyPath) -> bool:
    """Return whether a setting of a service is a secret of it; `oauth: false` is none."""
    return path == ("search", "apiKey") or (len(path) > 3 and path[2] in {"headers", "oauth"})


def _is_borrowed(origin: Origin, root: Path) -> bool:
    """Return whether a text of a project holds a variable, or a file outside of the project."""
    references = re.findall(REFERENCE_PATTERN, origin.raw) if isinstance(origin.raw, str) else ()
    return any(
        kind == "env" or _is_outside(origin.layer.base, name.strip(), root)
        for kind, name in references
    )


def _is_outside(base: Path, name: str, root: Path) -> bool:
    path = os.path.realpath(base / name)
    return name.startswith(("~", "$HOME")) or not Path(path).is_relative_to(os.path.realpath(root))
