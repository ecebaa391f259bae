"""What the terminal says of itself, what is clicked, and what follows."""

from typing import Any, Protocol

from textual import events, on
from textual.notifications import SeverityLevel

from codeloop.kit.lazy import load
from codeloop.tui.screen.bare import CommandWidget
from codeloop.tui.screen.transcript.transcript import Transcript
from codeloop.tui.state.items import Look
from codeloop.tui.terminal.colours import is_dark_ground
from codeloop.tui.terminal.driver import GROUND, TerminalSaid
from codeloop.tui.ui import Ui


class PicturesWithin(Protocol):
    """Draws pictures within the conversation."""

    async def told(self, question: str, answer: str) -> None:
        """Take in an answer of the terminal."""
        ...

    def resized(self) -> None:
        """Take in that the screen has another size."""
        ...


class AskingUi(Ui, inherit_bindings=False):
    """Stands on the terminal's ground, and asks it how it draws pictures once there is one."""

    inline: PicturesWithin | None = None
    """None until there was a picture."""

    def notify(self, message: str, *, title: str = "", severity: SeverityLevel = "information", **how: Any) -> None:
        """Show a message for a while; below the first cards it stays, for nothing is to cover them."""
        if self.shown is not None and self.shown.view is None and len(self.screen_stack) == 1:
            look: Look = "info" if severity == "information" else severity
            self.say(f"{title}: {message}" if title else message, look)
        else:
            super().notify(message, title=title, severity=severity, **how)

    @on(TerminalSaid)
    def _told(self, event: TerminalSaid) -> None:
        is_dark = is_dark_ground(event.text) if event.command == GROUND else None
        if is_dark is not None and self.appearance.stand_on(is_dark=is_dark):
            self.restyle()
        if self.inline is not None:
            self.aside(self.inline.told(event.command, event.text))

    @on(Transcript.PictureSeen)
    def _picture_seen(self) -> None:
        if self.inline is None and self.appearance.wants_pictures:
            self.inline = load("tui.screen.transcript.inline:InlinePictures")(self)

    @on(CommandWidget.Clicked)
    def _clicked(self, event: CommandWidget.Clicked) -> None:
        self.run_command(next(row for row in self.table if row.id == event.command), event.words)

    @on(events.Resize)
    def _turned(self) -> None:
        if self.inline is not None:
            self.call_after_refresh(self.inline.resized)
