"""The end of the program may come at any moment: what still runs then looks for no widget,
and says nothing.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.errors import UsageProblem
from tests.support.scripted_project import open_scripted_project
from tests.tui.app.running_ui import played


@pytest.mark.slow
async def test_what_ends_after_the_screen_is_gone_is_silent(tmp_path: Path) -> None:
    failures: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    gone = asyncio.Event()

    async def look_for_a_widget() -> None:
        await gone.wait()
        ui.ui.query_one("#tabs")

    async def refuse() -> None:
        await gone.wait()
        raise UsageProblem("Too late to be said.")

    async with open_scripted_project(tmp_path, []) as desk, played(desk, tmp_path / "state") as ui:
        tasks = [ui.ui.start_task(look_for_a_widget()), ui.ui.start_task(refuse())]
        ui.ui.exit(0)
    gone.set()
    await asyncio.wait(tasks)
    await asyncio.sleep(0)
    assert [type(task.exception()).__name__ for task in tasks] == ["NoMatches", "UsageProblem"]
    assert failures == []
