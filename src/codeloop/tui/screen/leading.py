"""The leader key, as the screen shows it: that it waits, and to who hesitates, for what."""

from collections.abc import Sequence
from functools import partial

from codeloop.kit.lazy import load
from codeloop.tui.settings.keys import UiCommand
from codeloop.tui.ui import Ui

HESITATES = 0.7
"""Seconds after which a person seems not to know what can follow."""


def led(ui: Ui, rows: Sequence[UiCommand]) -> None:
    """Run what followed the leader, or show that it waits."""
    if rows:
        ui.run_command(rows[0])
    elif ui.keys.is_waiting:
        ui.set_timer(ui.choices.settings.leader_timeout / 1000, partial(_let_go, ui))
        ui.set_timer(HESITATES, partial(_list_keys, ui))
    _let_go(ui)


async def _list_keys(ui: Ui) -> None:
    if ui.keys.is_waiting and len(ui.screen_stack) == 1:
        seconds = await load("tui.screen.leader_keys:list_keys")(ui)
        ui.set_timer(seconds, partial(_let_go, ui))


def _let_go(ui: Ui) -> None:
    """Show whether the leader still waits."""
    if not ui.keys.is_waiting:
        for keys in ui.query("LeaderKeys"):
            keys.display = False
    ui.draw()
