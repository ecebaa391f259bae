"""The arguments of `run` that are read without click mean what they mean to click."""

import click
import pytest

from codeloop.cli.commands.run import run
from codeloop.cli.option_values import (
    DIRECTORIES,
    FILES,
    FLAGS,
    NUMBERS,
    VALUES,
    Options,
    read_plain_arguments,
)

LINES = [
    [],
    ["Say done."],
    ["fix", "the", "test"],
    ["-"],
    [""],
    *([flag, "fix it"] for flag in FLAGS),
    *(["fix it", option, "value"] for option in VALUES),
    *(["fix it", option, "12"] for option in NUMBERS),
    *(["fix it", option, folder] for option in DIRECTORIES for folder in ("", ".", "/none", "-x")),
    *(["fix it", option, __file__] for option in FILES),
    ["--auto", "--auto", "-m", "a/b", "fix", "-m", "c/d", "it"],
    ["-s", "", "fix it"],
    ["-s", "--auto", "fix it"],
]


def read_by_click(arguments: list[str]) -> Options:
    values = run.make_context("run", list(arguments)).params
    return Options(**{name: value for name, value in values.items() if name != "output_format"})


@pytest.mark.parametrize("arguments", LINES, ids=" ".join)
def test_plain_arguments_are_read_as_click_reads_them(arguments: list[str]) -> None:
    assert read_plain_arguments(arguments) == read_by_click(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--", "--auto"],
        ["--model=a/b", "fix it"],
        ["-ma/b", "fix it"],
        ["--format", "json", "fix it"],
        ["--timeout", "5", "fix it"],
        ["--unknown", "fix it"],
        *(["fix it", option, word] for option in NUMBERS for word in ("0", "-1", "1.5", "1" * 20)),
        *(["fix it", option, path] for option in FILES for path in ("/none", ".")),
        ["fix it", "--model"],
    ],
    ids=" ".join,
)
def test_other_arguments_are_left_to_click(arguments: list[str]) -> None:
    assert read_plain_arguments(arguments) is None


def test_click_declares_each_plain_option() -> None:
    declared = {
        name for option in run.params if isinstance(option, click.Option) for name in option.opts
    }
    assert {*FLAGS, *VALUES, *NUMBERS, *DIRECTORIES, *FILES} <= declared
