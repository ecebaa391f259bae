"""The profiles: what a session does without a question."""

from collections.abc import Sequence

from codeloop.schema.permission import PROFILES, Profile
from codeloop.tui.dialogs.parts.dialog import Colours
from codeloop.tui.dialogs.parts.picks import Pick, PickSource
from codeloop.tui.dialogs.picker import Picker

WORDS: dict[Profile, str] = {
    "ask": "reads without asking; asks before it edits or runs anything",
    "auto": "edits in the project, runs in the sandbox; asks beyond both",
    "plan": "reads and plans; changes nothing",
    "yolo": "does everything without asking",
}


def profile_picker(current: str, colours: Colours) -> Picker[str]:
    """Return a list that closes with a profile's name."""

    async def list_profiles() -> Sequence[Pick[str]]:
        return [Pick(name, name, WORDS[name], mark="●" if name == current else "") for name in PROFILES]

    source = PickSource(title="Permission profile", load=list_profiles, start=current or None, choose="use it")
    return Picker(source, colours)
