"""What we use of textual that it does not promise to keep, each with the reason.

textual is pinned to its minor version; `tests/tui/terminal/test_textual_private.py` says when one of these has changed.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from textual import _ansi_sequences, constants
from textual import screen as screens
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.drivers import linux_driver
from textual.drivers._writer_thread import WriterThread
from textual.geometry import Region
from textual.screen import Screen
from textual.signal import Signal
from textual.widget import Widget

__all__ = [
    "ChopsUpdate",  # the changed parts of a frame: ours writes them shorter, and keeps emoji in their cells
    "Layer",
    "LayoutUpdate",  # a whole region of a frame: the same
    "WriterThread",  # ours does not wait for ever for a terminal that reads nothing
    "XTermParser",  # ours also reads keys that xterm writes in its own way
    "add_sequences",
    "resume_signal",
    "set_colour_system",
    "set_update_period",
    "use_writer",
    "visible_layers",
]

Layer = Sequence[tuple[Widget, Region, Region]]
"""The widgets of a row of the screen, the uppermost first, each with where it is in sight."""
resume_signal: Callable[[App[Any]], "Signal[object]"] = attrgetter("app_resume_signal")
"""Returns the signal that the terminal is ours again; the library leaves the app's type open."""
visible_layers: Callable[[Screen[Any]], Sequence[Layer]] = attrgetter("_compositor.layers_visible")
"""Returns for each row of a screen what covers what: a picture must not be drawn over a dialog."""


def set_colour_system(name: str) -> None:
    """Say how many colours the terminal has: the library only looks at the environment, before we have."""
    constants.__dict__["COLOR_SYSTEM"] = name


def set_update_period(seconds: float) -> None:
    """Say how long a change waits for others: the library's 1/120 s can be seen while typing."""
    screens.__dict__["UPDATE_PERIOD"] = seconds


def use_writer(kind: type[WriterThread]) -> None:
    """Have the driver write with a thread of this type."""
    linux_driver.__dict__["WriterThread"] = kind


def add_sequences(sequences: Mapping[str, object]) -> None:
    """Have the library read more sequences as keys; it has no place to register any."""
    known: dict[str, object] = vars(_ansi_sequences)["ANSI_SEQUENCES_KEYS"]
    known.update(sequences)
