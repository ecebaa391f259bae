"""The dialogs of commands: the palette to run one, and the help, which lists all keys."""

from collections.abc import Sequence

from msgspec import Struct

from codeloop.tui.dialogs.parts.dialog import GetStyles
from codeloop.tui.dialogs.parts.pick import Pick, PickSource
from codeloop.tui.dialogs.picker import Picker


class PaletteRow(Struct, frozen=True):
    """A command of the palette, or in the help, an action of the prompt. `keys`: as displayed;
    `slash`: after `/`.
    """

    id: str
    title: str
    group: str = ""
    keys: str = ""
    slash: str = ""


def create_palette(rows: Sequence[PaletteRow], get_styles: GetStyles) -> Picker[str]:
    """Create a list of all commands; it closes with the id of one."""
    # Without the command that opens the palette: it is open already.
    return _create_picker([row for row in rows if row.id != "command_list"], get_styles, "Commands")


def create_help(rows: Sequence[PaletteRow], get_styles: GetStyles) -> Picker[str]:
    """Create a list of all commands with their keys, the keyless last in each group;
    it closes with the id of one.
    """
    return _create_picker(
        sorted(rows, key=lambda row: not row.keys), get_styles, "Keys and commands"
    )


def _create_picker(rows: Sequence[PaletteRow], get_styles: GetStyles, title: str) -> Picker[str]:
    groups = list(dict.fromkeys(row.group for row in rows))

    async def list_rows() -> Sequence[Pick[str]]:
        return [
            Pick(
                row.id,
                row.title,
                detail=f"/{row.slash}" if row.slash else "",
                hint=row.keys,
                group=row.group,
            )
            for row in sorted(rows, key=lambda row: groups.index(row.group))
        ]

    return Picker(
        PickSource(title=title, load=list_rows, choose_label="run it", finds_groups=False),
        get_styles,
    )
