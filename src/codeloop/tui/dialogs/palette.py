"""The dialogs of commands: the palette to run one, and the help, which lists all keys."""

from collections.abc import Sequence

from msgspec import Struct

from codeloop.tui.dialogs.parts.dialog import GetStyles
from codeloop.tui.dialogs.parts.pick import Pick, PickSource
from codeloop.tui.dialogs.picker import Picker


class PaletteRow(Struct, frozen=True):
    """A command of the palette. `keys`: as displayed; `slash`: its name after `/`; `problem`: why it can't be run."""

    id: str
    title: str
    group: str = ""
    keys: str = ""
    slash: str = ""
    problem: str = ""


def create_palette(rows: Sequence[PaletteRow], get_styles: GetStyles, title: str = "Commands") -> Picker[str]:
    """Create a list of the commands that can be run; it closes with the id of one."""
    # Without the command that opens the palette: it is open already.
    available_rows = [row for row in rows if not row.problem and row.id != "command_list"]
    return _create_picker(available_rows, get_styles, title, "run it")


def create_help(rows: Sequence[PaletteRow], get_styles: GetStyles) -> Picker[str]:
    """Create a list of all commands with their keys, those without a key last; it closes with the id of one."""
    return _create_picker(sorted(rows, key=lambda row: not row.keys), get_styles, "Keys and commands", "run it")


def _create_picker(rows: Sequence[PaletteRow], get_styles: GetStyles, title: str, choose_label: str) -> Picker[str]:
    groups = list(dict.fromkeys(row.group for row in rows))

    async def list_rows() -> Sequence[Pick[str]]:
        return [
            Pick(
                row.id,
                row.title,
                detail=f"/{row.slash}" if row.slash else "",
                hint=row.keys,
                group=row.group,
                problem=row.problem,
            )
            for row in sorted(rows, key=lambda row: groups.index(row.group))
        ]

    return Picker(PickSource(title=title, load=list_rows, choose_label=choose_label, finds_groups=False), get_styles)
