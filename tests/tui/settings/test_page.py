"""docs/tui.md has every command, every key and every setting, and none that is not there."""

import re
from pathlib import Path

from codeloop.tui.commands import COMMANDS
from codeloop.tui.keys.prompt_bindings import PROMPT_BINDINGS
from codeloop.tui.settings.ui_settings import UiSettings

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "tui.md").read_text(encoding="utf-8")


def code(keys: str) -> str:
    return "" if keys == "none" else " ".join(f"`{key}`" for key in keys.split(","))


def test_every_command_stands_on_the_page_with_its_keys() -> None:
    wanted = {
        f"| {row.title} | {code(row.keys)} | {typed(row.slash, row.arguments)} | `{row.id}` |"
        for row in COMMANDS
    }
    assert wanted == set(
        re.findall(r"^\| [^|]+ \| [^|]* \| [^|]* \| `\w+` \|$", PAGE, re.MULTILINE)
    )


def typed(slash: str, arguments: str) -> str:
    return f"`{f'/{slash} {arguments}'.rstrip()}`" if slash else ""


def test_every_action_of_the_prompt_stands_on_the_page_with_its_keys() -> None:
    missing = [
        row.id
        for row in PROMPT_BINDINGS
        if f"| {row.description} | {code(row.keys)} | `{row.id}` |" not in PAGE
    ]
    assert missing == []


def test_every_setting_stands_on_the_page() -> None:
    rows = re.findall(
        r"^\| ((?:`\w+`(?:, )?)+) \| .* \| .* \|$", PAGE.partition("| key |")[2], re.MULTILINE
    )
    assert {name for row in rows for name in re.findall(r"\w+", row)} == set(
        UiSettings.__struct_fields__
    )
