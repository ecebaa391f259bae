"""Decides which keys run a command and which go to the focused widget, in the order of typing."""

import time
from collections.abc import Awaitable, Callable, Sequence

from textual import events
from textual.events import Event
from textual.widgets import Input

from codeloop.tui.commands import COMMANDS_BY_ID
from codeloop.tui.dialogs.parts.dialog import Dialog
from codeloop.tui.keys.key_names import normalise_key
from codeloop.tui.keys.key_order import MAX_HOLD_SECONDS, KeyOrder
from codeloop.tui.keys.ui_command import UiCommand
from codeloop.tui.ui import Ui
from codeloop.tui.widgets.prompt.completion.completion_popup import CompletionPopup
from codeloop.tui.widgets.prompt.prompt import PromptInput

INTERRUPT_KEY = "ctrl+c"
"""The key that copies, clears the prompt and closes dialogs;
with nothing of that to do, it quits if pressed twice.
"""
FOCUS_MOVING_KEYS = frozenset({"enter", "escape"})
"""Keys of the prompt that may move the focus, so that later keys go to another widget."""
MENU_DELAY_SECONDS = 0.7
"""Seconds after the leader key until the keys that can follow it are shown."""
MENU_READING_SECONDS = 15.0
"""How long the leader waits for a key while the menu is shown: reading it takes time."""


class KeyDispatcher:
    """Runs the commands of keys, and forwards other keys to the focused widget,
    in the order of typing.

    `forward`: Textual's own event handling, which does the forwarding.
    """

    def __init__(self, ui: Ui, forward: Callable[[Event], Awaitable[None]]) -> None:
        self.key_order = KeyOrder(self._handle_in_order, self._is_settled)
        self._ui = ui
        self._forward = forward
        self._events_before_opening: list[Event] = []
        """Keys and pastes from before the project was being opened."""

    async def dispatch(self, event: Event) -> None:
        """Handle a key or a paste after those typed before; forward any other event at once."""
        ui = self._ui
        # Without a screen the program is ending.
        if isinstance(event, events.Key) and not ui.screen_stack:
            return
        if ui.project_task is None and isinstance(event, events.Key | events.Paste):
            self._events_before_opening.append(event)
        elif isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            ui.typing_rhythm.add_key(event.time)
            await self.key_order.feed(event)
        # Among others a key that was dispatched before, and that no widget has handled: it
        # has bubbled up to the app.
        else:
            await self._forward(event)

    def replay_events_before_opening(self) -> None:
        """Handle the keys typed before the project was being opened,
        before any that are typed later.
        """
        # Not posted as messages again: keys that wait in the message queue by
        # now would overtake them.
        for event in self._events_before_opening:
            self._ui.typing_rhythm.add_key(event.time)
        self.key_order.hold(self._events_before_opening)
        self._events_before_opening.clear()

    def run_key_command(self, event: events.Key) -> None:
        """Run the command of a key that no widget has handled; none while a dialog is open."""
        if len(self._ui.screen_stack) > 1:
            return
        commands = self._ui.keymap.press(normalise_key(event.key)).commands
        if commands:
            event.stop()
            command = COMMANDS_BY_ID[commands[0]]
            # The command that quits is told about this key, which it wants pressed twice: it
            # is often pressed to copy.
            is_interrupt = event.key == INTERRUPT_KEY and command.id == "app_exit"
            self._ui.run_command(command, INTERRUPT_KEY if is_interrupt else "")

    async def _handle_in_order(self, event: Event) -> None:
        """Handle a key or a paste, once those before it are handled."""
        ui = self._ui
        if not ui.screen_stack:
            return
        key = normalise_key(event.key) if isinstance(event, events.Key) else ""
        has_dialog = len(ui.screen_stack) > 1
        if key and not has_dialog and self._handle_before_widget(key):
            return
        if key == INTERRUPT_KEY and has_dialog and not self._has_selection():
            # It closes a dialog, as Escape does.
            event = events.Key("escape", None)
        # Looked up before the key is handled, since that may move the focus.
        target = ui.screen.focused or ui.screen
        await self._forward(event)
        # Forwarding only posts the key to the widget;
        # the next one must not overtake what it sets off.
        if key and (has_dialog or key in FOCUS_MOVING_KEYS or ui.keymap.press(key).commands):
            self.key_order.hold_until_handled(target)

    def _has_selection(self) -> bool:
        """Return whether text is selected in a dialog's input, so that it can be copied."""
        focused = self._ui.screen.focused
        return isinstance(focused, Input) and not focused.selection.is_empty

    def _handle_before_widget(self, key: str) -> bool:
        """Handle a key of a leader sequence, or one whose command precedes the widget;
        return whether it was one.
        """
        ui = self._ui
        # Asked before `press`, which ends the sequence.
        was_leader_active = ui.keymap.is_leader_active
        meaning = ui.keymap.press(key)
        commands = [COMMANDS_BY_ID[name] for name in meaning.commands]
        if meaning.begins_sequence or was_leader_active:
            self._handle_leader(commands)
            return True
        command = next((each for each in commands if each.precedes_widget), None)
        if command is None or _is_choosing(ui.tab.prompt, key):
            return False
        ui.run_command(command)
        return True

    def _is_settled(self) -> bool:
        """Return whether no earlier key can still open or close a dialog,
        so that the next key's target is known.
        """
        ui, now = self._ui, time.monotonic()
        screen = ui.screen_stack[-1] if ui.screen_stack else None
        if isinstance(screen, Dialog):
            return screen.takes_keys
        # The deadlines keep a command that hangs from taking the keyboard away.
        if (
            ui.shown_tab is not None
            and now - (ui.shown_tab.prompt.command_submitted_at or 0.0) < MAX_HOLD_SECONDS
        ):
            return False
        return all(
            now - since >= MAX_HOLD_SECONDS for since in ui.tasks.values() if since is not None
        )

    def _handle_leader(self, commands: Sequence[UiCommand]) -> None:
        """Run the command of a leader sequence; after the leader key alone, show that it waits,
        and later its menu.
        """
        ui = self._ui
        if commands:
            ui.run_command(commands[0])
        elif ui.keymap.is_leader_active:
            ui.set_timer(ui.choices.settings.leader_timeout / 1000, self._show_leader_state)
            ui.set_timer(MENU_DELAY_SECONDS, self._open_menu)
        self._show_leader_state()

    async def _open_menu(self) -> None:
        ui = self._ui
        if ui.keymap.is_leader_active and len(ui.screen_stack) == 1:
            # Imported here, since few sessions ever show the menu.
            from codeloop.tui.widgets.leader_menu import LeaderMenu

            ui.keymap.extend_wait(MENU_READING_SECONDS)
            menu = next(iter(ui.query(LeaderMenu)), None)
            if menu is None:
                menu = LeaderMenu()
                await ui.mount(menu)
            titles = {command.id: command.title for command in ui.commands}
            menu.show(
                [(key, titles[name]) for key, name in ui.keymap.list_leader_keys()],
                lambda: ui.appearance.styles,
            )
            ui.set_timer(MENU_READING_SECONDS, self._show_leader_state)

    def _show_leader_state(self) -> None:
        """Hide the leader's menu unless the leader still waits,
        and show in the status bar whether it does.
        """
        if not self._ui.keymap.is_leader_active:
            # By name, since the class is not imported before the menu is shown.
            for menu in self._ui.query("LeaderMenu"):
                menu.display = False
        self._ui.draw()


def _is_choosing(prompt: PromptInput, key: str) -> bool:
    """Return whether a key moves the cursor in the list of completions."""
    actions = {"completion_previous", "completion_next"} & {
        *prompt.editor.actions_by_key.get(key, ())
    }
    return (
        bool(actions) and prompt.editor.has_focus and bool(prompt.query_one(CompletionPopup).rows)
    )
