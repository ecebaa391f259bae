"""What services are known to refuse, by address and model: kept in the cache folder for a month."""

import time
from contextlib import suppress
from pathlib import Path

from codeloop.kit.small_files import create_private_folder, read_start_or_empty, write_atomically
from codeloop.model.quirks import Quirks
from codeloop.model.wire.refused_fields import leave_out

MAX_KNOWN_BYTES = 64 * 1024
KNOWN_DAYS = 30
"""After that it is tried again: services learn."""
_SECONDS_PER_DAY = 86_400


def apply_known(file: Path, address: str, quirks: Quirks) -> Quirks:
    """Return the quirks without what the service at an address is known to refuse.

    `file`: it has a line for each field: the day, the address, the field.
    """
    for line in _list_lines(file):
        _, known, name = line.split("\t")
        if known == address:
            quirks = leave_out(quirks, name) or quirks
    return quirks


def remember(file: Path, address: str, name: str) -> None:
    """Note that the service at an address refuses a field."""
    line = f"{int(time.time()) // _SECONDS_PER_DAY}\t{address}\t{name}"
    lines = dict.fromkeys([*_list_lines(file), line])
    # Else it is found out again.
    with suppress(OSError):
        create_private_folder(file.parent)
        write_atomically(file, "".join(f"{each}\n" for each in lines).encode())


def _list_lines(file: Path) -> list[str]:
    """Return the lines that are of their form and not too old."""
    oldest = int(time.time()) // _SECONDS_PER_DAY - KNOWN_DAYS
    content = read_start_or_empty(file, MAX_KNOWN_BYTES)
    lines = content.decode("utf-8", "replace").split("\n")[:-1]
    return [
        line
        for line in lines
        if line.count("\t") == 2
        and (day := line.partition("\t")[0]).isdecimal()
        and int(day) >= oldest
    ]
