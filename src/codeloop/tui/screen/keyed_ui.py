"""What keys do: the leader, what goes before what has the focus, and the order of what is typed."""

import time
from collections.abc import Sequence

from textual import events, on
from textual.widgets import Input

from codeloop.tui.choices import Choices
from codeloop.tui.commands import BY_ID
from codeloop.tui.dialogs.parts.dialog import Dialog
from codeloop.tui.prompt.bindings import arrived
from codeloop.tui.prompt.completions.popup import CompletionPopup
from codeloop.tui.prompt.prompt import PromptInput
from codeloop.tui.screen.asking_ui import AskingUi
from codeloop.tui.screen.key_order import GRACE, KeyOrder
from codeloop.tui.screen.leading import led
from codeloop.tui.settings.keys import Keymap
from codeloop.tui.settings.launch import UiLaunch
from codeloop.tui.settings.look import Appearance
from codeloop.tui.terminal.input_queue import InputDropped

INTERRUPT = "ctrl+c"
"""Has other meanings everywhere else: it leaves only when it is pressed twice."""
LEADING = frozenset({"enter", "escape"})
"""Keys of the prompt after which others may be meant for something else."""


class KeyedUi(AskingUi, inherit_bindings=False):
    """Runs the commands of keys."""

    _before: Sequence[events.Event] = ()
    """Typed before there was a prompt to type into."""

    def __init__(self, launch: UiLaunch, appearance: Appearance, keys: Keymap, choices: Choices) -> None:
        super().__init__(launch, appearance, keys, choices)
        self.commands = {}
        self._order = KeyOrder(self._take, self._is_settled)

    async def on_event(self, event: events.Event) -> None:
        """Take the keys that go before what has the focus: the leader, what follows it, and a few others."""
        if isinstance(event, events.Key) and not self.screen_stack:  # the program ends, and this key came too late
            return
        if self.opening is None and isinstance(event, events.Key | events.Paste):
            self._before = [*self._before, event]
            return
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self.keys.rhythm.note_key(event.time)
            await self._order.feed(event)
            return
        await super().on_event(event)

    async def wait_for_keys(self) -> None:
        """Wait until the keys that wait for others here are taken."""
        await self._order.wait()

    @on(InputDropped)
    def _dropped(self, event: InputDropped) -> None:
        self._order.drop()
        # A toast also in an empty session: what stands below the cards may go with the key that dropped the others.
        super(AskingUi, self).notify(f"{event.count:,} keys that waited were dropped.", severity="warning")

    async def _take(self, event: events.Event) -> None:
        """Do what a key means now that it is its turn."""
        if not self.screen_stack:
            return
        key = arrived(event.key) if isinstance(event, events.Key) else ""
        is_plain = len(self.screen_stack) == 1
        if key and is_plain and self._is_led(key):
            return
        if key == "ctrl+c" and not is_plain and not self._has_selection():
            event = events.Key("escape", None)
        target = self.screen.focused or self.screen
        await super().on_event(event)
        if key and (not is_plain or key in LEADING or self.keys.press(key).commands):
            self._order.follow(target)

    def _has_selection(self) -> bool:
        """Return whether a part of the line that is typed in a dialog is selected, so that it can be copied."""
        line = self.screen.focused
        return isinstance(line, Input) and not line.selection.is_empty

    def _is_led(self, key: str) -> bool:
        """Take the leader, what follows it, and keys that go before what has the focus; return whether it is one."""
        was_waiting = self.keys.is_waiting
        press = self.keys.press(key)
        rows = [BY_ID[name] for name in press.commands if name in BY_ID]
        if press.waits or was_waiting:
            led(self, rows)
            return True
        early = next((row for row in rows if row.early), None)
        if early is None or _is_choosing(self.tab.prompt, key):
            return False
        self.run_command(early)
        return True

    def _is_settled(self) -> bool:
        """Return whether what was typed so far is done, as far as it opens or closes something."""
        screen, now = self.screen_stack[-1] if self.screen_stack else None, time.monotonic()
        if isinstance(screen, Dialog):
            return screen.takes_keys
        if self.shown is not None and now - (self.shown.prompt.calls_since or 0.0) < GRACE:
            return False
        return all(now - since >= GRACE for since in self.commands.values())

    def on_key(self, event: events.Key) -> None:
        """Run the command of a key that nothing else has taken."""
        if len(self.screen_stack) > 1:
            return
        row = next((BY_ID[name] for name in self.keys.press(arrived(event.key)).commands if name in BY_ID), None)
        if row is not None:
            event.stop()
            self.run_command(row, INTERRUPT if event.key == INTERRUPT and row.id == "app_exit" else "")

    def type_before(self) -> None:
        """Type what was typed before there was a prompt."""
        for event in self._before:
            self.post_message(event)
        self._before = ()


def _is_choosing(prompt: PromptInput, key: str) -> bool:
    """Return whether a key chooses among the completions that are shown."""
    names = {"completion_previous", "completion_next"} & {*prompt.editor.keys.get(key, ())}
    return bool(names) and prompt.editor.has_focus and bool(prompt.query_one(CompletionPopup).rows)
