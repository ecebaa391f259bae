"""Says why the remotes of a git command that runs without the sandbox may start a program
of this machine.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from codeloop.kit.git.settings import GitSetting

# `remote.origin.url`, of which a remote may have several: git pushes to all of them
_REMOTE_ADDRESS = r"remote\.(.*)\.(?:url|pushurl)"
# Where a command without a remote goes: the value is the name of one, or itself an address.
_DEFAULT_REMOTE = r"branch\..*\.(?:remote|pushremote)|remote\.pushdefault"
# `url.git@example.com:.insteadof`: addresses that begin with the value begin with
# `git@example.com:` instead
_ADDRESS_START = r"url\.(.*)\.(?:insteadof|pushinsteadof)"
# Files in which old versions of git kept remotes, and which git still reads.
_OLD_REMOTE_FOLDERS = ("remotes", "branches")
# Matches URLs of the network, also in the form of scp: `host:path`.
# `::` would name a remote helper, a program.
_URL = r"(https?|ssh|git)://.*|[\w.-]+@[\w.-]+:.*|[\w.-]+:(?!:|//).*"


def find_remote_doubt(
    remote: str, settings: Sequence[GitSetting], is_writable: Callable[[str], bool]
) -> str:
    """Return why a remote that a command names may be a folder on this machine,
    whose hooks run; "": it is not.

    `is_writable`: whether sandboxed commands may write an address that is a path.
    """
    addresses = _list_remote_addresses(settings)
    if remote not in addresses and not re.fullmatch(_URL, remote):
        return f"{remote} is not a remote of the repository, so it may be a folder whose hooks would run"
    return _find_address_doubt(addresses, settings, is_writable)


def find_default_remote_doubt(
    subcommand: str,
    common: Path,
    settings: Sequence[GitSetting],
    is_writable: Callable[[str], bool],
) -> str:
    """Return why the remote of a command that names none may be a folder on this machine;
    "": it is not.
    """
    addresses = _list_remote_addresses(settings)
    for setting in settings:
        # Fetching from this repository itself, as for branches that follow a local one,
        # runs nothing.
        is_here = setting.value == "." and subcommand != "push"
        if not re.fullmatch(_DEFAULT_REMOTE, setting.name) or setting.value in addresses or is_here:
            continue
        if not re.fullmatch(_URL, setting.value):
            return f"{setting.name} is {setting.value}, which may be a folder whose hooks would run"
    for folder in _OLD_REMOTE_FOLDERS:
        with suppress(OSError):
            if file := next((common / folder).iterdir(), None):
                return f".git/{folder}/{file.name} may name a folder whose hooks would run"
    return _find_address_doubt(addresses, settings, is_writable)


def _find_address_doubt(
    addresses: Mapping[str, Sequence[str]],
    settings: Sequence[GitSetting],
    is_writable: Callable[[str], bool],
) -> str:
    """Return why one of the remotes, given by their names, may run a program of this machine;
    "": none does.
    """
    starts = [
        match[1] for setting in settings if (match := re.fullmatch(_ADDRESS_START, setting.name))
    ]
    for address in (*chain(*addresses.values()), *starts):
        if re.fullmatch(_URL, address):
            continue
        if "::" in address:
            return f"the remote {address} is reached by a helper program"
        if is_writable(address):
            return f"the remote {address} lies where sandboxed commands may write"
    return ""


def _list_remote_addresses(settings: Iterable[GitSetting]) -> dict[str, list[str]]:
    """Return all addresses of each remote, by its name."""
    addresses: dict[str, list[str]] = {}
    for setting in settings:
        if match := re.fullmatch(_REMOTE_ADDRESS, setting.name):
            addresses.setdefault(match[1], []).append(setting.value)
    return addresses
