"""What we use of textual that it does not promise to keep: a new version that changes
one of these is seen here.
"""

import ast
import inspect
from importlib.metadata import version
from pathlib import Path

import pytest
from textual import constants
from textual import screen as screens
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._compositor import ChopsUpdate, Compositor, LayoutUpdate
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.drivers import linux_driver
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver
from textual.widget import Widget
from textual.widgets import Input

HOME = "terminal/textual_private.py"
ROOM = Path(__file__).parents[3] / "src" / "codeloop" / "tui"
TAKES: dict[object, str] = {
    App._begin_update: "(self) -> 'None'",
    App._display: "(self, screen: 'Screen', renderable: 'RenderableType | None') -> 'None'",
    App._end_update: "(self) -> 'None'",
    App._fatal_error: "(self) -> 'None'",
    App._handle_exception: "(self, error: 'Exception') -> 'None'",
    LinuxDriver._sigcont_application: "(self, *_) -> 'None'",
    LinuxDriver._sigtstp_application: "(self, *_) -> 'None'",
    Widget._set_dirty: "(self, *regions: 'Region') -> 'None'",
    XTermParser._sequence_to_key_events: "(self, sequence: 'str', alt: 'bool' = False) -> 'Iterable[events.Key]'",
}
"""The methods that classes of ours override, with what they take and give."""


def test_textual_is_the_version_that_this_was_written_for() -> None:
    assert version("textual").rsplit(".", 1)[0] == "8.2"


@pytest.mark.parametrize("method", TAKES, ids=lambda method: getattr(method, "__qualname__", ""))
def test_a_method_that_is_overridden_takes_what_it_took(method: object) -> None:
    assert callable(method)
    assert str(inspect.signature(method)) == TAKES[method]


def test_what_is_read_and_set_is_there() -> None:
    assert {"COLOR_SYSTEM"} <= vars(constants).keys()
    assert {"UPDATE_PERIOD"} <= vars(screens).keys()
    assert {"WriterThread"} <= vars(linux_driver).keys()
    assert ANSI_SEQUENCES_KEYS["\x1b[A"]
    assert isinstance(Compositor.layers_visible, property)
    assert [*inspect.signature(ChopsUpdate).parameters] == ["chops", "spans", "chop_ends"]
    assert [*inspect.signature(LayoutUpdate).parameters] == ["strips", "region"]
    assert [*inspect.signature(WriterThread).parameters] == ["file"]
    fresh = App[None]()
    for name in ("_driver", "_exit", "_running", "_exception", "_clipboard", "app_resume_signal"):
        assert hasattr(fresh, name), name
    for name in ("_start_widget", "_close_messages_no_wait"):
        assert callable(getattr(App, name)), name
    assert hasattr(Input(), "_bindings")
    assert "_layout_updates" in vars(Input())
    assert "_vertical_scrollbar" in inspect.getsource(Widget.vertical_scrollbar.fget or Widget)


@pytest.mark.slow
def test_private_modules_are_imported_in_one_file() -> None:
    found = {
        f"{path.relative_to(ROOM)}: {name}"
        for path in ROOM.rglob("*.py")
        if path.relative_to(ROOM).as_posix() != HOME
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("textual")
        for name in [str(node.module), *(f"{node.module}.{each.name}" for each in node.names)]
        if any(part.startswith("_") for part in name.split("."))
    }
    assert found == set()
