"""The dialog of stashed prompts."""

from collections.abc import Sequence

from codeloop.schema.errors import UsageProblem
from codeloop.tui.dialogs.parts.dialog import Colours
from codeloop.tui.dialogs.parts.pick import Pick, PickAction, PickSource
from codeloop.tui.dialogs.picker import Picker
from codeloop.tui.render.formats import format_short_time
from codeloop.tui.widgets.prompt.history.prompt_store import PromptStore


def create_stash_picker(store: PromptStore, colours: Colours) -> Picker[int]:
    """Create a list of the stash, the latest first, that closes with the index of a prompt in it."""

    async def list_prompts() -> Sequence[Pick[int]]:
        prompts = list(enumerate(store.list_stash()))
        return [
            Pick(at, prompt.text, hint=format_short_time(prompt.at) if prompt.at else "")
            for at, prompt in reversed(prompts)
        ]

    async def forget(index: int | None) -> bool:
        try:
            return index is not None and store.pop_stash(index) is not None
        except OSError as error:
            raise UsageProblem(f"{store.folder} can't be written: {error.strerror or error}.") from error

    source = PickSource(
        title="Stashed prompts",
        load=list_prompts,
        actions=(PickAction("ctrl+d", "delete", forget),),
        empty="No prompt is stashed.",
        choose="restore",
    )
    return Picker(source, colours)
