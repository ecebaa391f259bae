"""docs/cli.md has every command and every option of it, and none that is not there."""

import re
from collections.abc import Iterator

import click
import pytest

from codeloop.cli.command_table import app
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


COMMANDS = dict(commands(app))


def shown(name: str) -> set[str]:
    """Return the options that the page shows of a command: in its row,
    or in a table of flags of its own.
    """
    table = re.search(rf"^\| flag of `{name}` \|.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    rows = re.findall(rf"^\| `{name}(?: [^`]*)?` \|.*", PAGE, re.MULTILINE)
    assert bool(table) != (len(rows) == 1), f"{name}: one row, or one table of its flags"
    code = re.findall(r"`([^`]+)`", table[1] if table else rows[0])
    return {option for words in code if words.startswith("-") for option in OPTION.findall(words)}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_options_of_a_command_are_those_that_it_has(name: str) -> None:
    options = [
        each for each in COMMANDS[name].params if isinstance(each, click.Option) and not each.hidden
    ]
    assert shown(name) == {
        spelling for option in options for spelling in (*option.opts, *option.secondary_opts)
    }


def test_every_row_is_a_command() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", PAGE.partition("| command |")[2], re.MULTILINE)
    assert [
        row for row in rows if not any(f"{row} ".startswith(f"{name} ") for name in COMMANDS)
    ] == []
