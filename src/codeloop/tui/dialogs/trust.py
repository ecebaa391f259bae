"""Asks whether a project's own configuration may be used."""

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

CHOICES = "y  trust this directory from now on      n  ignore its risky settings, and ask again next time"


class TrustScreen(ModalScreen[bool]):
    """Shows what the project has, or what of it has changed; nothing but `y` trusts it."""

    DEFAULT_CSS = """
    TrustScreen { align: center middle; }
    TrustScreen > Vertical {
        width: 90%; max-width: 110; height: auto; max-height: 90%; padding: 1 2; background: $background-panel;
    }
    TrustScreen VerticalScroll { height: auto; max-height: 1fr; }
    TrustScreen .title { text-style: bold; margin-bottom: 1; }
    TrustScreen .choices { margin-top: 1; color: $warning; }
    """

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """Give the question and the choices."""
        with Vertical():
            yield Static("Trust this project?", classes="title", markup=False)
            with VerticalScroll(can_focus=True):
                yield Static(self._question.rstrip("\n"), markup=False)
            yield Static(CHOICES, classes="choices", markup=False)

    def on_key(self, event: events.Key) -> None:
        """Take the answer."""
        if event.key in {"y", "n", "escape"}:
            event.stop()
            self.dismiss(event.key == "y")
