"""Pictures of a conversation, each on a screen of its own."""

from codeloop.schema.errors import UsageProblem
from codeloop.schema.part import FilePart, Part, ToolPart, ToolStateCompleted
from codeloop.tui.terminal.picture_view import show_picture
from codeloop.tui.ui import Ui


async def show(ui: Ui, part_id: str) -> None:
    """Show a picture of the conversation by its id, without one the latest."""
    view = ui.tab.view
    known = view.log.messages.values() if view is not None else ()
    found = [file for message in known for part in message.parts.values() for file in _pictures(part)]
    chosen = [file for file in found if file.id == part_id] if part_id else found[-1:]
    if not chosen:
        raise UsageProblem("There is no picture in this conversation.")
    told = await show_picture(ui, chosen[0])
    if told:
        ui.say(told)


def _pictures(part: Part) -> list[FilePart]:
    match part:
        case FilePart():
            files = [part]
        case ToolPart(state=ToolStateCompleted(attachments=attachments)):
            files = attachments or []
        case _:
            files = []
    return [file for file in files if file.mime.startswith("image/")]
