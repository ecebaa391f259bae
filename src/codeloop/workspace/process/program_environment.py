"""Makes the environments of helper programs (MCP servers, hooks, language servers) from ours,
without keys.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from codeloop.workspace.sandbox.paths.home_paths import BASE_FOLDER_VARIABLES, FOLDER_VARIABLES

# Names that are allowed, instead of names that are removed: no list of secret
# names would be complete.
_ALLOWED_VARIABLES = frozenset(
    (
        *(
            "HOME",
            "LOGNAME",
            "PATH",
            "SHELL",
            "TERM",
            "USER",
            "LANG",
            "LANGUAGE",
            "TZ",
            "TMPDIR",
            "TMP",
            "TEMP",
        ),
        *(
            "DISPLAY",
            "WAYLAND_DISPLAY",
            "XAUTHORITY",
            "DBUS_SESSION_BUS_ADDRESS",
            "COLORTERM",
            "NO_COLOR",
        ),
        *(
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "NO_PROXY",
            "http_proxy",
            "https_proxy",
            "all_proxy",
            "no_proxy",
        ),
        *(
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "REQUESTS_CA_BUNDLE",
            "CURL_CA_BUNDLE",
            "NODE_EXTRA_CA_CERTS",
        ),
        *(
            "NVM_DIR",
            "NVM_BIN",
            "VOLTA_HOME",
            "PYENV_ROOT",
            "JAVA_HOME",
            "DENO_DIR",
            "BUN_INSTALL",
            "CARGO_HOME",
        ),
        *(
            "PIP_INDEX_URL",
            "UV_INDEX_URL",
            "UV_DEFAULT_INDEX",
            "UV_CACHE_DIR",
            "npm_config_registry",
            "DOCKER_HOST",
        ),
        *(
            "NPM_CONFIG_REGISTRY",
            "npm_config_cache",
            "NPM_CONFIG_CACHE",
            "PLAYWRIGHT_BROWSERS_PATH",
        ),
    )
)
_ALLOWED_PREFIXES = ("LC_", "XDG_")
_TOOL_VARIABLES = frozenset(
    (
        *FOLDER_VARIABLES,
        *BASE_FOLDER_VARIABLES,
        *(
            "GOFLAGS",
            "GOPROXY",
            "GOPRIVATE",
            "GOTOOLCHAIN",
            "GOMODCACHE",
            "GOCACHE",
            "CGO_ENABLED",
            "RUSTFLAGS",
            "CI",
        ),
        *(
            "GOWORK",
            "GOENV",
            "GO111MODULE",
            "GOEXPERIMENT",
            "GOOS",
            "GOARCH",
            "BUNDLE_GEMFILE",
            "BUNDLE_WITHOUT",
        ),
        *("PYENV_VERSION", "RBENV_VERSION", "NODENV_VERSION", "JENV_VERSION", "GRADLE_USER_HOME"),
        *("SDKMAN_DIR", "MY_RUBY_HOME", "RUBY_ROOT", "GOENV_VERSION"),
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
_VERSION_VARIABLE = r"(?:ASDF|MISE)_[A-Z0-9_]+_VERSION"
"""Variables by which version managers are told of the version of a tool."""
_FOLDER_LIST_VARIABLES = frozenset(
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
"""Variables that hold several folders, separated by colons."""


def make_program_environment(
    environment: Mapping[str, str],
    configured_variables: Mapping[str, str],
    excluded_folders: Iterable[Path] = (),
) -> dict[str, str]:
    """Return the environment of a program: our allowed variables, then `configured_variables`.

    `excluded_folders`: variables that lead into these are dropped, and of PATH and the like the
    entries that do, so that no file there decides what is run.
    One that holds the user's home is not excluded.
    """
    variables = {
        name: value
        for name, value in environment.items()
        if name in _ALLOWED_VARIABLES or name.startswith(_ALLOWED_PREFIXES)
    }
    return {**_drop_paths_into(variables, excluded_folders, environment), **configured_variables}


def _drop_paths_into(
    variables: Mapping[str, str], excluded_folders: Iterable[Path], environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables without paths into the excluded folders,
    except into one that holds the home.
    """
    # A project that is the home itself contains all tools of the user.
    home = os.path.realpath(environment.get("HOME") or "/")
    real_folders = map(os.path.realpath, excluded_folders)
    folders = [folder for folder in real_folders if not _is_below(home, folder)]
    if not folders:
        return dict(variables)
    remaining: dict[str, str] = {}
    for name, value in variables.items():
        if name in _FOLDER_LIST_VARIABLES:
            entries = (each for each in value.split(os.pathsep) if not _leads_into(each, folders))
            remaining[name] = os.pathsep.join(entries)
        elif not _lies_in_any(value, folders):
            remaining[name] = value
    return remaining


def make_tool_environment(
    environment: Mapping[str, str],
    configured_variables: Mapping[str, str],
    excluded_folders: Iterable[Path] = (),
) -> dict[str, str]:
    """Return the environment of a program that runs developer tools: that of any program,
    with the tools' variables.
    """
    tool_variables = {
        name: value
        for name, value in environment.items()
        if name in _TOOL_VARIABLES or re.fullmatch(_VERSION_VARIABLE, name)
    }
    tool_variables = _drop_paths_into(tool_variables, excluded_folders, environment)
    return make_program_environment(
        environment, {**tool_variables, **configured_variables}, excluded_folders
    )


def _leads_into(value: str, folders: Iterable[str]) -> bool:
    """Return whether a path is relative or lies in one of the folders."""
    return not value.startswith("/") or _lies_in_any(value, folders)


def _lies_in_any(value: str, folders: Iterable[str]) -> bool:
    """Return whether a value is a path into one of the folders,
    or one relative to wherever the program runs.
    """
    if not value.startswith("/"):
        return value.startswith(("./", "../"))
    real = os.path.realpath(value)
    return any(_is_below(real, folder) for folder in folders)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
