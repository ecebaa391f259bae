"""Prints values as JSON, for the commands that have `--json`."""

import click
import msgspec

from codeloop.kit.text.terminal_text import escape_json_controls


def print_json(value: object) -> None:
    """Print a value as JSON that is safe to show in a terminal."""
    click.echo(escape_json_controls(msgspec.json.encode(value).decode()))
