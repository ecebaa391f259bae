"""The table of the built-in tools, and what models are told of tools that nobody has called yet."""

import sys
from subprocess import run

import pytest

from codeloop.app.toolbox import BUILTIN, PARAMETERS, builtin_tools
from codeloop.tool.tool import BuiltinTool
from scripts.build_tools import offered


def test_the_file_of_parameters_says_what_the_tools_take() -> None:
    assert PARAMETERS.read_bytes() == offered(), "run `make tools`"


@pytest.mark.parametrize("row", builtin_tools(), ids=lambda row: row.name)
def test_a_row_says_what_its_tool_says(row: BuiltinTool) -> None:
    assert row.loaded.name == row.name
    assert (row.spec, row.permission) == (row.loaded.spec, row.loaded.permission)


def test_what_is_only_offered_is_not_imported() -> None:
    program = "import sys; from codeloop.app.toolbox import toolbox_of; toolbox_of().specs('m'); print(*sys.modules)"
    loaded = run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert {f"codeloop.{target.partition(':')[0]}" for target in BUILTIN.values()} & set(loaded) == set()
