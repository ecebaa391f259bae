"""The dialog that asks whether to trust a project,
and shows what its files want to run and change.
"""

from time import monotonic

from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from codeloop.kit.text.terminal_text import escape_controls
from codeloop.tui.dialogs.parts.dialog import Dialog, GetStyles
from codeloop.tui.dialogs.parts.dialog_rows import draw_keys, draw_text, draw_title
from codeloop.tui.keys.early_keys import MIN_PAUSE_SECONDS
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import wrap_text
from codeloop.tui.widgets.rows_view import RowsView

TRUST_QUESTION = "Trust this project?"
EXPLANATION = (
    "Its files can run programs on this machine: hooks, servers, commands.",
    "They can choose where your prompts and keys go, and what is allowed without asking.",
    "Trust it only if you know who wrote them. You can work without trust, too: risky settings are left out.",
)
# A project that was trusted before shows a diff of its requests,
# with these signs at the start of each line.
_COLOURS_BY_SIGN = {"+": "diff_added", "-": "diff_removed", "@": "diff_hunk_header"}
_ROWS_BY_KEY = {"up": -1, "down": 1, "pageup": -8, "pagedown": 8}
"""The keys that scroll, and by how many rows."""


class TrustScreen(Dialog[bool]):
    """Closes with whether the user trusts the project.
    `about`: the requests of its files, or their changes.

    `silence`: seconds without a key, after the keys were drawn, until a key counts as an answer.
    `early_text`: the text typed before that, which belongs to the prompt.
    """

    def __init__(
        self, about: str, get_styles: GetStyles, silence: float = MIN_PAUSE_SECONDS
    ) -> None:
        super().__init__(get_styles)
        self.early_text = ""
        self._about = about
        self._silence = silence
        # Monotonic seconds: when the keys were drawn, or the last key came too early. Infinite
        # until they are drawn, so that no key counts before.
        self._quiet_since = float("inf")

    def compose(self) -> ComposeResult:
        """Yield the explanation, the files, and the keys."""
        with Vertical(id="dialog-box"):
            yield RowsView("trust-title")
            yield RowsView("trust-about")
            yield RowsView("trust-keys")

    def draw(self) -> None:
        """Redraw everything."""
        styles, outer = self.get_styles(), self.compute_box_width(100)
        width = outer - 4
        self.query_one("#dialog-box").styles.width = outer
        about: list[Row] = []
        for line in EXPLANATION:
            about += draw_text(line, styles, width)
        about.append([])
        for line in escape_controls(self._about).rstrip("\n").split("\n"):
            colour = _COLOURS_BY_SIGN.get(line[:1], "text_muted")
            about += [
                [Segment("│ ", styles.of("border")), Segment(row, styles.of(colour))]
                for row in wrap_text(line, width - 3)
            ]
        keys = [
            ("y", "trust it from now on"),
            ("n", "leave its risky settings out"),
            ("↑↓", "scroll"),
        ]
        foot: list[Row] = [[], *draw_keys(keys, styles, width)]
        # The explanation scrolls with the requests: in a small terminal the keys must stay visible.
        room = max(self.size.height - len(foot) - 5, 2)
        self.query_one("#trust-title", RowsView).show(
            [draw_title(TRUST_QUESTION, styles, width), []], 2
        )
        self.query_one("#trust-about", RowsView).show(about, min(len(about), room))
        self.query_one("#trust-keys", RowsView).show(foot, len(foot))
        self.call_after_refresh(self._note_drawing)

    @property
    def is_ready(self) -> bool:
        """Whether keys count as an answer."""
        return monotonic() >= self._quiet_since + self._silence

    def _note_drawing(self) -> None:
        """Note when the keys were first drawn: before that, the question can't have been read."""
        if not self.query_one("#trust-keys", RowsView).is_drawn:
            self.set_timer(0.02, self._note_drawing)
        elif self._quiet_since == float("inf"):
            self._quiet_since = monotonic()

    def on_key(self, event: events.Key) -> None:
        """Answer or scroll; a key that came too early is kept for the prompt,
        and restarts the wait.
        """
        event.stop()
        # Someone who types a prompt while the dialog opens must not trust the
        # project by a `y` in it.
        if event.time < self._quiet_since + self._silence:
            if self._quiet_since < float("inf"):
                self._quiet_since = max(self._quiet_since, event.time)
            if event.is_printable and event.character:
                self.early_text += event.character
        elif event.key in _ROWS_BY_KEY:
            self.query_one("#trust-about", RowsView).scroll_relative(
                y=_ROWS_BY_KEY[event.key], animate=False
            )
        elif (key := event.key.lower()) in {"y", "n", "escape"}:
            self.dismiss(key == "y")
