"""What people type who come from other programs names a command that there is."""

import click
import pytest

from codeloop.cli.command_table import COMMANDS as TABLE
from codeloop.cli.command_table import app
from codeloop.cli.commands.run import run
from codeloop.cli.group import CommandGroup
from codeloop.cli.suggestions import (
    COMMAND_SYNONYMS,
    OPTION_SYNONYMS,
    SUBCOMMAND_SYNONYMS,
    find_similar_commands,
    suggest_options,
)
from codeloop.client.slash.commands import COMMANDS_BY_FOREIGN_NAME
from codeloop.tui.commands import COMMANDS_BY_SLASH


@pytest.fixture
def root() -> click.Context:
    return click.Context(app, info_name="codeloop")


def lines(group: click.Group, before: str = "") -> set[str]:
    """Return every command, groups too, as it is typed."""
    found = set[str]()
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        found.add(f"{before}{name}")
        if isinstance(command, click.Group):
            found |= lines(command, f"{before}{name} ")
    return found


def test_every_suggested_command_is_one() -> None:
    known = lines(app)
    options = {name for param in app.params for name in param.opts}
    meant = {line for each in COMMAND_SYNONYMS.values() for line in each}
    assert meant - known - options - {"--version"} == set()
    assert {leaf for each in SUBCOMMAND_SYNONYMS.values() for leaf in each} <= {
        line.rpartition(" ")[2] for line in known
    }
    assert not set(COMMAND_SYNONYMS) & set(TABLE)


def test_every_suggested_option_is_one(root: click.Context) -> None:
    options = {name for param in (*run.params, *app.params) for name in param.opts} | {
        "--version",
        "codeloop run",
    }
    assert set(OPTION_SYNONYMS.values()) <= options
    assert suggest_options(click.Context(run, parent=root), "--dangerously-skip-permissions") == [
        "--auto"
    ]


def test_every_suggested_slash_command_is_one() -> None:
    assert {name for each in COMMANDS_BY_FOREIGN_NAME.values() for name in each} <= set(
        COMMANDS_BY_SLASH
    )


@pytest.mark.parametrize(
    ("word", "best"),
    [
        ("login", "codeloop auth login"),
        ("lgoin", "codeloop auth login"),
        ("list", "codeloop session list"),
        ("connect", "codeloop auth login"),
        ("fork", "codeloop session fork"),
        ("sandbox", "codeloop debug sandbox"),
        ("chat", "codeloop"),
    ],
)
def test_a_word_is_found_on_every_level(root: click.Context, word: str, best: str) -> None:
    assert find_similar_commands(root, word)[0] == best


def test_every_group_suggests_commands(root: click.Context) -> None:
    assert isinstance(root.command, click.Group)
    groups = {
        name: root.command.get_command(root, name) for name in root.command.list_commands(root)
    }
    plain = [
        name
        for name, each in groups.items()
        if isinstance(each, click.Group) and not isinstance(each, CommandGroup)
    ]
    assert plain == []
