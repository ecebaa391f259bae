"""Registries that the user (never the project) has configured for pip, npm, cargo, go and other tools."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from codeloop.kit.small_files import read_start
from codeloop.net.hosts import add_brackets
from codeloop.schema.limits import CONFIG_BYTES
from codeloop.workspace.sandbox.network.hosts import read_hosts

_PIP = r"(?:extra-)?index-url|find-links"

FILES = (
    (".config/pip/pip.conf", _PIP),
    (".pip/pip.conf", _PIP),
    ("Library/Application Support/pip/pip.conf", _PIP),
    ("/etc/pip.conf", _PIP),
    (".config/uv/uv.toml", rf"{_PIP}|url|(?:python|pypy)-install-mirror"),
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
"""Files (below the home, or absolute) -> the keys in them that hold download URLs."""

FILE_VARIABLES = {
    "PIP_CONFIG_FILE": ".config/pip/pip.conf",
    "UV_CONFIG_FILE": ".config/uv/uv.toml",
    "NPM_CONFIG_USERCONFIG": ".npmrc",
}
"""Variables that move one of the files."""

VARIABLES = re.compile(
    r"PIP_(EXTRA_)?INDEX_URL|PIP_FIND_LINKS|UV_(INDEX_URL|EXTRA_INDEX_URL|DEFAULT_INDEX|INDEX|FIND_LINKS)"
    r"|npm_config_(\w+_)?registry|NPM_CONFIG_REGISTRY|YARN_NPM_REGISTRY_SERVER|YARN_REGISTRY"
    r"|CARGO_REGISTRIES_\w+_INDEX|GOPROXY|GOSUMDB|HEX_MIRROR"
)
"""Variables that hold a download URL."""

# A key with what follows it on its line, and the URLs on the lines below it.
_SETTING = r"""^[ \t]*[:"']?(?:{})["']?[ \t]*[=: \t>].*(?:\n[ \t-]+["']?https?://.*)*"""
_URL = re.compile(r"https?://[^\s\"'<>,|]+")


def find_user_hosts(home: Path, environment: Mapping[str, str], project: Path) -> list[str]:
    """Return the hosts, as entries of a list of hosts. A file that lies in the project, also by a link, is not read."""
    texts = [text for name, text in environment.items() if VARIABLES.fullmatch(name)]
    inside = Path(os.path.realpath(project))
    elsewhere = {path: environment[name] for name, path in FILE_VARIABLES.items() if environment.get(name)}
    for name, keys in FILES:
        path = Path(os.path.realpath(home / elsewhere.get(name, name)))
        if inside not in path.parents:
            texts += re.findall(_SETTING.format(keys), _read_text(path), re.MULTILINE)
    return list(dict.fromkeys(entry for text in texts for url in _URL.findall(text) for entry in _make_entries(url)))


def _read_text(path: Path) -> str:
    try:
        return read_start(path, CONFIG_BYTES.value).decode(errors="replace")
    except OSError:
        return ""


def _make_entries(url: str) -> Iterator[str]:
    """Yield the entry for a URL's host, unless there can be none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        entry = add_brackets(host) if port is None else f"{add_brackets(host)}:{port}"
        read_hosts([entry])
    except ValueError:
        return
    yield entry
