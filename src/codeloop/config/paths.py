"""The folders of codeloop's own files: those of the XDG specification,
or all below `CODELOOP_HOME`.

Also reads the paths in entries of the configuration key `plugin`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from codeloop.kit.jsonc import is_list
from codeloop.schema.errors import CodeloopError

RULES_FOLDER = Path(".claude", "rules")
"""Where rules for the model lie in a project and in the home."""
MARKETPLACE = ".claude-plugin/marketplace.json"
# A plugin's folder is at most this deep in its marketplace: `plugins/group/name`.
_MARKETPLACE_LEVELS = 3


class Paths(Struct, frozen=True):
    """Codeloop's four folders, the home directory, and two folders of other programs;
    none of them need exist.

    `opencode_config`: the folder of OpenCode's global configuration, which is read, too.
    `claude_home`: the folder of the global CLAUDE.md.
    """

    data: Path
    config: Path
    cache: Path
    state: Path
    home: Path
    opencode_config: Path
    claude_home: Path

    @property
    def credentials_file(self) -> Path:
        """The file of stored keys."""
        return self.data / "auth.json"

    @property
    def trust_file(self) -> Path:
        """The file that lists the trusted directories."""
        return self.state / "trust.json"

    @property
    def stop_file(self) -> Path:
        """The file whose change asks all running turns to stop."""
        return self.state / "stop"

    @property
    def log_folder(self) -> Path:
        """The folder of log files."""
        return self.data / "log"

    @property
    def private_folders(self) -> tuple[Path, ...]:
        """The folders with the user's keys, sessions and rules, which commands may not access."""
        return (self.data, self.config, self.state, self.opencode_config)

    def get_project_folder(self, project_id: str) -> Path:
        """Return the folder of one project's sessions and snapshots."""
        return self.data / "project" / project_id

    def find_databases(self) -> list[Path]:
        """Return the paths of the databases of all projects on this machine, sorted. Blocks."""
        return sorted((self.data / "project").glob("*/codeloop.db"))

    def expand_home(self, path: str) -> Path:
        """Return a path with a leading `~` or `$HOME` replaced by the home directory."""
        for start in ("~", "$HOME"):
            if path == start or path.startswith(start + "/"):
                return self.home / path[len(start) + 1 :]
        return Path(path)


def get_plugin_name(entry: Any) -> str | None:
    """Return the name in an entry of the key `plugin`,
    which is a text or a list of name and options; else None.
    """
    name = entry[0] if is_list(entry) and entry else entry
    return name if isinstance(name, str) else None


def get_plugin_path(name: str, base: Path, paths: Paths) -> Path | None:
    """Return the path that an entry of the key `plugin` names; None: it names a package.

    `base`: the folder that relative paths start from.
    """
    if name.startswith("file://"):
        return Path(os.path.normpath(unquote(urlsplit(name).path)))
    if name.startswith((".", "/", "~", "$HOME")):
        return Path(os.path.normpath(base / paths.expand_home(name)))
    return None


def list_marketplace_files(plugin: Path) -> list[Path]:
    """Return where the list of the marketplace around a plugin's folder may be,
    the nearest first.
    """
    return [above / MARKETPLACE for above in plugin.resolve().parents[:_MARKETPLACE_LEVELS]]


def find_paths(environment: Mapping[str, str]) -> Paths:
    """Return the folders for an environment, without accessing the file system.

    Raises CodeloopError when neither HOME nor CODELOOP_HOME is set to an absolute path.
    """
    home = _read_absolute(environment, "HOME")
    codeloop_home = environment.get("CODELOOP_HOME", "")
    if codeloop_home:
        top = Path(codeloop_home)
        if not top.is_absolute():
            raise CodeloopError(
                f"CODELOOP_HOME is {codeloop_home!r}, which is not an absolute path. Set it to one, or unset it."
            )
        folders = (top / name for name in ("data", "config", "cache", "state"))
        return Paths(
            *folders,
            home=home or top,
            opencode_config=top / "opencode",
            claude_home=top / ".claude",
        )
    if home is None:
        raise CodeloopError(
            "There is no home directory: HOME is not set to an absolute path. "
            "Set HOME, or set CODELOOP_HOME to a folder for codeloop's files."
        )
    config = _read_absolute(environment, "XDG_CONFIG_HOME") or home / ".config"
    return Paths(
        data=(_read_absolute(environment, "XDG_DATA_HOME") or home / ".local" / "share")
        / "codeloop",
        config=config / "codeloop",
        cache=(_read_absolute(environment, "XDG_CACHE_HOME") or home / ".cache") / "codeloop",
        state=(_read_absolute(environment, "XDG_STATE_HOME") or home / ".local" / "state")
        / "codeloop",
        home=home,
        opencode_config=config / "opencode",
        claude_home=home / ".claude",
    )


def _read_absolute(environment: Mapping[str, str], name: str) -> Path | None:
    """Return a variable as a path; None if it is not absolute."""
    # The XDG specification says to ignore relative paths.
    path = Path(environment.get(name, ""))
    return path if path.is_absolute() else None
