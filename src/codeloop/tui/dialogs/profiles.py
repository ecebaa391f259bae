"""The dialog of permission profiles, which decide what a session may do without asking."""

from collections.abc import Sequence

from codeloop.schema.permission import PROFILE_DESCRIPTIONS
from codeloop.tui.dialogs.parts.dialog import GetStyles
from codeloop.tui.dialogs.parts.pick import Pick, PickSource
from codeloop.tui.dialogs.picker import Picker


def create_profile_picker(current: str, get_styles: GetStyles) -> Picker[str]:
    """Create a list of the permission profiles that closes with the name of one."""

    async def list_profiles() -> Sequence[Pick[str]]:
        return [
            Pick(name, name, words, mark="●" if name == current else "")
            for name, words in PROFILE_DESCRIPTIONS.items()
        ]

    source = PickSource(
        title="Permission profile", load=list_profiles, start=current or None, choose_label="use it"
    )
    return Picker(source, get_styles)
