"""Commands that show a picture of the conversation on the whole screen."""

from collections.abc import Iterator

from codeloop.schema.errors import UsageProblem
from codeloop.schema.part import FilePart, Part, ToolPart, ToolStateCompleted
from codeloop.tui.render.picture_rows import is_picture
from codeloop.tui.state.session_view import SessionView
from codeloop.tui.terminal.pictures.picture_view import show_picture
from codeloop.tui.ui import Ui


async def show_picture_of_session(ui: Ui, part_id: str) -> None:
    """Show the picture with this part id; "": the latest one."""
    file_parts = [*find_pictures(ui.tab.view)]
    matches = [file for file in file_parts if file.id == part_id] if part_id else file_parts[-1:]
    if not matches:
        raise UsageProblem("There is no picture in this conversation.")
    message = await show_picture(ui, matches[0])
    if message:
        ui.say(message)


def find_pictures(view: SessionView | None) -> Iterator[FilePart]:
    """Yield the pictures of a conversation, the oldest first."""
    if view is None:
        return
    for message_id in view.log.ids:
        for part in view.log.messages[message_id].parts.values():
            yield from _list_pictures(part)


def _list_pictures(part: Part) -> list[FilePart]:
    match part:
        case FilePart():
            files = [part]
        case ToolPart(state=ToolStateCompleted(attachments=attachments)):
            files = attachments or []
        case _:
            files = []
    return [file for file in files if is_picture(file)]
