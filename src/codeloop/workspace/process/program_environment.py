"""The environment variables that helper programs get from ours: a list of names without keys."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from codeloop.workspace.sandbox.home_paths import BASE_FOLDER_VARIABLES, FOLDER_VARIABLES

ALLOWED = frozenset(
    (
        *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP"),
        *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "COLORTERM", "NO_COLOR"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
        *("NVM_DIR", "NVM_BIN", "VOLTA_HOME", "PYENV_ROOT", "JAVA_HOME", "DENO_DIR", "BUN_INSTALL", "CARGO_HOME"),
        *("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_CACHE_DIR", "npm_config_registry", "DOCKER_HOST"),
        *("NPM_CONFIG_REGISTRY", "npm_config_cache", "NPM_CONFIG_CACHE", "PLAYWRIGHT_BROWSERS_PATH"),
    )
)
_STARTS = ("LC_", "XDG_")
_OF_TOOLS = frozenset(
    (
        *FOLDER_VARIABLES,
        *BASE_FOLDER_VARIABLES,
        *("GOFLAGS", "GOPROXY", "GOPRIVATE", "GOTOOLCHAIN", "GOMODCACHE", "GOCACHE", "CGO_ENABLED", "RUSTFLAGS", "CI"),
        *(
            "RUSTUP_TOOLCHAIN",
            "CARGO_TARGET_DIR",
            "DOTNET_CLI_TELEMETRY_OPTOUT",
            "SDKROOT",
            "DEVELOPER_DIR",
            "CC",
            "CXX",
        ),
    )
)
"""Variables that locate and configure developer tools."""
_FOLDER_LISTS = frozenset(
    (
        *(
            "PATH",
            "XDG_CONFIG_DIRS",
            "XDG_DATA_DIRS",
            "PYTHONPATH",
            "NODE_PATH",
            "LD_LIBRARY_PATH",
            "GEM_PATH",
            "GOPATH",
        ),
        *("PERL5LIB", "RUBYLIB", "CPATH", "LIBRARY_PATH", "PKG_CONFIG_PATH", "MANPATH", "ERL_LIBS"),
    )
)
"""Variables that hold several folders."""


def program_environment(
    environment: Mapping[str, str], own: Mapping[str, str], kept_from: Iterable[Path] = ()
) -> dict[str, str]:
    """Return the environment of a program: what is allowed of ours, then what its definition sets.

    `kept_from`: variables that lead into these folders are dropped, so that their files can't decide what is run.
    """
    variables = {name: value for name, value in environment.items() if name in ALLOWED or name.startswith(_STARTS)}
    return {**_drop_paths(variables, kept_from), **own}


def _drop_paths(variables: dict[str, str], kept_from: Iterable[Path]) -> dict[str, str]:
    """Return the variables without paths into these folders."""
    # A project that is the home itself has all tools of the user's in it.
    home = os.path.realpath(variables.get("HOME") or "/")
    folders = [folder for each in kept_from if not _is_below(home, folder := os.path.realpath(each))]
    if folders:
        for name in _FOLDER_LISTS & variables.keys():
            entries = (each for each in variables[name].split(os.pathsep) if not _leads_into(each, folders))
            variables[name] = os.pathsep.join(entries)
        variables = {
            name: value for name, value in variables.items() if name in _FOLDER_LISTS or not _is_in(value, folders)
        }
    return variables


def tool_environment(
    environment: Mapping[str, str], own: Mapping[str, str], kept_from: Iterable[Path] = ()
) -> dict[str, str]:
    """Return the environment of a program that runs developer tools: `program_environment` and their variables."""
    more = {name: value for name, value in environment.items() if name in _OF_TOOLS}
    return program_environment(environment, {**_drop_paths(more, kept_from), **own}, kept_from)


def _leads_into(value: str, folders: Iterable[str]) -> bool:
    """Return whether one path of a list is relative or lies in one of these folders."""
    return not value.startswith("/") or _is_in(value, folders)


def _is_in(value: str, folders: Iterable[str]) -> bool:
    if not value.startswith("/"):
        return value.startswith(("./", "../"))
    real = os.path.realpath(value)
    return any(_is_below(real, folder) for folder in folders)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
