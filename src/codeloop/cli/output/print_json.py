"""Prints values as JSON, for the commands that have `--json`."""

import click

from codeloop.kit.text.terminal_text import escape_json_controls
from codeloop.schema.wire import encode_json


def print_json(value: object) -> None:
    """Print a value as JSON that is safe to show in a terminal."""
    click.echo(escape_json_controls(encode_json(value).decode()))
