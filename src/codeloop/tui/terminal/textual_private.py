"""The private parts of Textual that codeloop uses, each with the reason.

textual is pinned to a minor version; `tests/tui/terminal/test_textual_private.py` fails
when one of these has changed.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from textual import _ansi_sequences, constants
from textual import screen as screens
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.drivers import linux_driver
from textual.drivers._writer_thread import WriterThread
from textual.geometry import Region
from textual.screen import Screen
from textual.signal import Signal
from textual.widget import Widget

__all__ = [
    # the changed parts of a frame: codeloop's version writes less, and keeps emoji in their cells
    "ChopsUpdate",
    # what Textual takes as a frame: codeloop's holds only what differs on the terminal
    "CompositorUpdate",
    "Layer",
    "LayoutUpdate",  # a rectangle of a frame: for the same reasons
    "WriterThread",  # codeloop's version does not block on a terminal that reads nothing
    "XTermParser",  # codeloop's version also parses xterm's sequences
    "add_sequences",
    "request_layout",
    "resume_signal",
    "set_colour_system",
    "set_update_period",
    "use_writer",
    "visible_layers",
]

Layer = Sequence[tuple[Widget, Region, Region]]
"""The widgets of a screen row, the topmost first, each with its visible region."""
resume_signal: Callable[[App[Any]], "Signal[object]"] = attrgetter("app_resume_signal")
"""Returns the signal that is sent when the app gets the terminal back; Textual does not type it."""
visible_layers: Callable[[Screen[Any]], Sequence[Layer]] = attrgetter("_compositor.layers_visible")
"""Returns the layer of each screen row, since a picture must not be drawn over a dialog."""


def set_colour_system(name: str) -> None:
    """Set how many colours the terminal has: Textual reads only the environment,
    and does so when it is imported.
    """
    constants.__dict__["COLOR_SYSTEM"] = name


def set_update_period(seconds: float) -> None:
    """Set how long a change waits to be drawn with others: Textual's 1/120 s is
    noticeable while typing.
    """
    screens.__dict__["UPDATE_PERIOD"] = seconds


def use_writer(kind: type[WriterThread]) -> None:
    """Make the driver use this type of writer thread."""
    linux_driver.__dict__["WriterThread"] = kind


def add_sequences(sequences: Mapping[str, object]) -> None:
    """Register more key sequences; Textual has no public way to do so."""
    ansi_sequences_keys: dict[str, object] = vars(_ansi_sequences)["ANSI_SEQUENCES_KEYS"]
    ansi_sequences_keys.update(sequences)


def request_layout(widget: Widget) -> None:
    """Have the screen laid out again, since a widget with `height: auto` needs another height."""
    # Textual keeps the size that it computed for the same number of requests, and does not count a
    # request while an earlier one of the widget waits. So a widget that changed twice would keep
    # the size of its first change if a neighbour had the screen laid out in between.
    vars(widget)["_layout_updates"] += 1
    widget.refresh(layout=True)
