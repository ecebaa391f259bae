"""The last row of the screen: what goes on stays apart from what was used, however long it is."""

import time

from codeloop.schema.live_events import Busy, Retry
from codeloop.schema.message import NO_TOKENS
from codeloop.schema.wire import replace
from codeloop.tui.actions.program import QUIT_QUESTION
from codeloop.tui.state.session_view import SessionView
from codeloop.tui.themes.styles import Styles
from codeloop.tui.themes.theme_loader import load_theme
from codeloop.tui.widgets.status_bar import StatusBar, StatusContent
from tests.tui.stage import Stage, staged
from tests.tui.stored.client import StoredClient

LONG = "local limits the rate of requests (HTTP 429: Rate limit reached, try again later, or choose another model)"


async def test_a_long_reason_to_try_again_is_cut_and_a_little_use_is_not_none() -> None:
    client = StoredClient()
    view = SessionView(replace(client.session(), cost=0.25, tokens=NO_TOKENS))
    view.load(client.messages(), None)
    view.set_status(Retry(attempt=2, message=LONG, next=int(time.time() * 1000) + 9_500))
    styles = Styles(load_theme("codeloop", "dark"))
    bar = StatusBar(styles)
    async with staged(Stage(bar)) as pilot:
        bar.show(view, StatusContent(context_window=10_000_000, hint="esc twice stops"), styles)
        await pilot.pause()
        row = bar.render_line(0).text
        content = StatusContent(
            context_window=10_000_000, pending_key=QUIT_QUESTION, hint="esc twice stops"
        )
        bar.show(view, content, styles)
        asked = bar.render_line(0).text
    assert row.startswith(" retry 2 in ")
    assert " s: local limits the rate" in row
    assert row.rstrip().endswith("…  12.5k (<1 %)  $0.2500  esc twice stops")
    assert asked.rstrip() == f" {QUIT_QUESTION} …"


async def test_a_turn_that_begins_between_two_drawings_has_a_time() -> None:
    client = StoredClient()
    view = SessionView(client.session())
    styles = Styles(load_theme("codeloop", "dark"))
    bar = StatusBar(styles)
    async with staged(Stage(bar)):
        bar.show(view, StatusContent(), styles)
        view.set_status(Busy())
        assert " 0s " in bar.render_line(0).text


async def test_what_runs_in_the_background_is_counted_on_the_narrowest_screen() -> None:
    client = StoredClient()
    view = SessionView(replace(client.session(), cost=0.25, tokens=NO_TOKENS))
    view.load(client.messages(), None)
    styles = Styles(load_theme("codeloop", "dark"))
    bar = StatusBar(styles)
    content = StatusContent(
        agent="build", model="lab/haiku", context_window=100_000, jobs="1 in background"
    )
    async with staged(Stage(bar), size=(40, 5)):
        bar.show(view, content, styles)
        assert bar.render_line(0).text.strip() == "build lab/haiku        1 in background"
