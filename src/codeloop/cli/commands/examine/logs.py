"""`codeloop debug logs`: where the log is, its last lines, and those to come."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import click

from codeloop.cli.options import make_completion
from codeloop.cli.target.log import LOG_FILE_NAME
from codeloop.config.paths import find_paths
from codeloop.kit.small_files import read_start
from codeloop.kit.terminal_text import escape_controls
from codeloop.schema.limits import SERVER_LOG, SERVER_LOG_LINE

SERVER_LOG_NAME = "server.log"
FOLLOW_INTERVAL = 0.25
"""Seconds between two looks at a file that is followed."""


@click.command()
@click.option("-n", "lines", type=click.IntRange(0, 100_000), default=50, show_default=True, help="How many lines.")
@click.option("-f", "--follow", is_flag=True, help="Show new lines as they come, until Ctrl-C.")
@click.option(
    "-s", "--session", metavar="ID", shell_complete=make_completion("session"), help="Only lines about a session."
)
@click.option("--server", is_flag=True, help="The log of servers, instead of that of runs and the terminal UI.")
@click.option("--path", "only_path", is_flag=True, help="Print only where the file is.")
def logs(lines: int, session: str | None, *, follow: bool, server: bool, only_path: bool) -> None:
    """Show the end of the log: failed requests, tools and servers, and crashes. No prompt and no key is in it."""
    path = find_paths(os.environ).log_folder / (SERVER_LOG_NAME if server else LOG_FILE_NAME)
    if only_path:
        click.echo(escape_controls(str(path)))
        return
    click.echo(escape_controls(f"{path}{'' if path.exists() else ' (nothing was logged yet)'}"), err=True)
    matching_lines = [line for line in _read_lines(path) if session is None or session in line]
    for line in matching_lines[len(matching_lines) - lines if lines < len(matching_lines) else 0 :]:
        click.echo(escape_controls(line))
    if follow:
        _show_new_lines(path, session)


def _read_lines(path: Path) -> list[str]:
    """Return the lines of a log, oldest first, the rotated file included."""
    last_lines: list[str] = []
    for file in (path.with_name(f"{path.name}.1"), path):
        try:
            last_lines += _decode(read_start(file, SERVER_LOG.value + SERVER_LOG_LINE.value)).splitlines()
        except OSError:
            continue
    return last_lines


def _show_new_lines(path: Path, session: str | None) -> None:
    """Show lines as they come, until a signal."""
    for line in _follow_lines(path):
        if session is None or session in line:
            click.echo(escape_controls(line))


def _follow_lines(path: Path) -> Iterator[str]:
    offset, partial_line = path.stat().st_size if path.exists() else 0, b""
    while True:
        size = path.stat().st_size if path.exists() else 0
        # The log has been rotated: the file begins anew.
        if size < offset:
            offset, partial_line = 0, b""
        if size > offset:
            with path.open("rb") as file:
                file.seek(offset)
                new = file.read(size - offset)
            offset += len(new)
            *complete, partial_line = (partial_line + new).split(b"\n")
            yield from map(_decode, complete)
        time.sleep(FOLLOW_INTERVAL)


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")
