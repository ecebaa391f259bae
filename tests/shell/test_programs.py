"""Each program has one row, in a notation without mistakes."""

from collections import Counter

import pytest

from codeloop.shell.options import parse_operands
from codeloop.shell.program_row import ProgramRow
from codeloop.shell.program_table import find_row, list_families

ROWS = {name: row for rows in list_families() for name, row in rows.items()}
ROLES = set("rRVwWXDMbutn@gfl-AC")
CHANGES = {"", "all", "last", "deep", "edit", "see", "none", "sent", "remote", "link", "script"}


def test_no_program_has_rows_in_two_families() -> None:
    counts = Counter(name for rows in list_families() for name in rows)
    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("name", sorted(ROWS))
def test_every_letter_of_a_row_has_a_meaning(name: str) -> None:
    for row in (ROWS[name], *ROWS[name].subcommands.values()):
        for text, option in row.all_options.items():
            assert set(option.roles) <= ROLES, text
            assert option.change in CHANGES, text
        check_operands(row)


def check_operands(row: ProgramRow) -> None:
    if row.operands:
        operands = parse_operands(row.operands)
        assert {operands.first_role, operands.other_roles, operands.last_role} <= ROLES


@pytest.mark.parametrize("name", sorted(ROWS))
def test_no_option_is_both_harmless_and_not(name: str) -> None:
    row = ROWS[name]
    writing = {
        text for text, option in row.known_options.items() if set(option.roles) & set("wWXDMbt")
    }
    assert row.reads is None or writing == set()


def test_a_program_without_a_row_is_not_known() -> None:
    assert find_row("no-such-program") == ProgramRow()
