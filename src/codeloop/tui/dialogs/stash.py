"""Prompts that were put aside."""

from collections.abc import Sequence

from codeloop.client.display.numbers import when
from codeloop.tui.dialogs.parts.choices import Pick, PickSource
from codeloop.tui.dialogs.parts.dialog import Colours
from codeloop.tui.dialogs.picker import Picker
from codeloop.tui.prompt.store import PromptStore


def stash_list(store: PromptStore, colours: Colours) -> Picker[int]:
    """Return a list that closes with the index of a prompt in the stash, the latest first."""

    async def listed() -> Sequence[Pick[int]]:
        kept = list(enumerate(store.stash()))
        return [Pick(at, prompt.text, hint=when(prompt.at) if prompt.at else "") for at, prompt in reversed(kept)]

    source = PickSource(title="Put aside", load=listed, empty="No prompt was put aside.", choose="take it back")
    return Picker(source, colours)
