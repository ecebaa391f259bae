"""Finds the registries that the user has configured for pip, npm, cargo, go and other tools.

They are added to the hosts that sandboxed commands may reach. Settings in the project do not count:
whoever wrote the project could name a host of their own.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from codeloop.kit.small_files import read_start
from codeloop.schema.limits import CONFIG_BYTES

if TYPE_CHECKING:
    from codeloop.workspace.sandbox.network.host_list import HostList

_PIP_KEYS = r"(?:extra-)?index-url|find-links"

_SETTINGS_FILES = (
    (".config/pip/pip.conf", _PIP_KEYS),
    (".pip/pip.conf", _PIP_KEYS),
    ("Library/Application Support/pip/pip.conf", _PIP_KEYS),
    ("/etc/pip.conf", _PIP_KEYS),
    (".config/uv/uv.toml", rf"{_PIP_KEYS}|url|(?:python|pypy)-install-mirror"),
    (".npmrc", "(?:@[^:]+:)?registry"),
    (".yarnrc", "(?:@[^:]+:)?registry"),
    (".yarnrc.yml", "npmRegistryServer"),
    (".bunfig.toml", "registry|url"),
    (".cargo/config.toml", "registry|index"),
    (".cargo/config", "registry|index"),
    (".config/go/env", "GOPROXY|GOSUMDB"),
    (".gemrc", "sources"),
    (".m2/settings.xml", "<url"),
    (".nuget/NuGet/NuGet.Config", '<add key="(?!https?_proxy)[^"]*"'),
    (".config/composer/config.json", "url"),
)
"""Pairs of a settings file (below the home, or absolute) and a pattern of its
keys that hold download URLs.
"""

_FILE_VARIABLES = {
    "PIP_CONFIG_FILE": ".config/pip/pip.conf",
    "UV_CONFIG_FILE": ".config/uv/uv.toml",
    "NPM_CONFIG_USERCONFIG": ".npmrc",
}
"""The variable that moves a settings file -> the file's usual path."""

_URL_VARIABLES = (
    r"PIP_(EXTRA_)?INDEX_URL|PIP_FIND_LINKS|UV_(INDEX_URL|EXTRA_INDEX_URL|DEFAULT_INDEX|INDEX|FIND_LINKS)"
    r"|npm_config_(\w+_)?registry|NPM_CONFIG_REGISTRY|YARN_NPM_REGISTRY_SERVER|YARN_REGISTRY"
    r"|CARGO_REGISTRIES_\w+_INDEX|GOPROXY|GOSUMDB|HEX_MIRROR"
)
"""Variables that hold a download URL."""

# A key with the rest of its line, and the URLs on the lines below it, as in lists of pip and YAML.
_SETTING_PATTERN = r"""^[ \t]*[:"']?(?:{})["']?[ \t]*[=: \t>].*(?:\n[ \t-]+["']?https?://.*)*"""
_URL = r"https?://[^\s\"'<>,|]+"


def list_reachable_hosts(
    listed_hosts: Sequence[str], environment: Mapping[str, str], root: Path
) -> "HostList | None":
    """Return the hosts of a policy and those that the user has configured; None: neither adds to
    the default ones. Raises OSError for an entry that names no host.
    """
    home = Path(environment.get("HOME") or "/nonexistent")
    user_hosts = find_user_hosts(home, environment, root)
    if not listed_hosts and not user_hosts:
        return None
    from codeloop.workspace.sandbox.network.host_list import parse_host_list

    try:
        return parse_host_list(listed_hosts, user_hosts)
    except ValueError as error:
        raise OSError(0, f"the hosts of the sandbox are wrong: {error}") from None


def find_user_hosts(home: Path, environment: Mapping[str, str], project: Path) -> list[str]:
    """Return the user's registries as entries for `parse_host_list`.

    A file that lies in the project, even if only by a link, is not read.
    """
    texts = [text for name, text in environment.items() if re.fullmatch(_URL_VARIABLES, name)]
    inside = Path(os.path.realpath(project))
    moved_files = {
        path: environment[name] for name, path in _FILE_VARIABLES.items() if environment.get(name)
    }
    for name, keys in _SETTINGS_FILES:
        path = Path(os.path.realpath(home / moved_files.get(name, name)))
        if inside not in path.parents and (text := _read_text(path)):
            texts += re.findall(_SETTING_PATTERN.format(keys), text, re.MULTILINE)
    return list(
        dict.fromkeys(
            entry
            for text in texts
            for url in re.findall(_URL, text)
            for entry in _make_entries(url)
        )
    )


def _read_text(path: Path) -> str:
    try:
        return read_start(path, CONFIG_BYTES.value).decode(errors="replace")
    except OSError:
        return ""


def _make_entries(url: str) -> Iterator[str]:
    """Yield the entry for a URL's host; nothing for a host that no entry can name."""
    # Imported late, as above: few users have settings with addresses.
    from codeloop.net.hosts import add_brackets
    from codeloop.workspace.sandbox.network.host_list import parse_host_list

    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        entry = add_brackets(host) if port is None else f"{add_brackets(host)}:{port}"
        parse_host_list([entry])
    except ValueError:
        return
    yield entry
