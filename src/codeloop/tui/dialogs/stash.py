"""The dialog of stashed prompts."""

from collections.abc import Sequence

from codeloop.schema.errors import UsageProblem
from codeloop.tui.dialogs.parts.dialog import GetStyles
from codeloop.tui.dialogs.parts.pick import Pick, PickAction, PickSource
from codeloop.tui.dialogs.picker import Picker
from codeloop.tui.render.formats import format_short_time
from codeloop.tui.widgets.prompt.history.prompt_store import PromptStore


def create_stash_picker(store: PromptStore, get_styles: GetStyles) -> Picker[int]:
    """Create a list of the stash, the latest first,
    that closes with the index of a prompt in it.
    """

    async def list_prompts() -> Sequence[Pick[int]]:
        prompts = list(enumerate(store.list_stash()))
        return [
            Pick(index, prompt.text, hint=format_short_time(prompt.at) if prompt.at else "")
            for index, prompt in reversed(prompts)
        ]

    async def delete(index: int | None) -> bool:
        try:
            return index is not None and store.pop_stash(index) is not None
        except OSError as error:
            raise UsageProblem(
                f"{store.folder} can't be written: {error.strerror or error}."
            ) from error

    source = PickSource(
        title="Stashed prompts",
        load=list_prompts,
        actions=(PickAction("ctrl+d", "delete", delete),),
        empty_message="No prompt is stashed.",
        choose_label="restore",
    )
    return Picker(source, get_styles)
