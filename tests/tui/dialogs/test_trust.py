"""The question whether to trust a project."""

from pathlib import Path

import pytest

from codeloop.tui.dialogs.trust import TrustScreen
from tests.tui.stored.play import stored


@pytest.mark.slow
@pytest.mark.parametrize("size", [(40, 12), (30, 10), (80, 24)])
async def test_its_keys_are_in_sight_and_its_text_can_be_reached(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    about = "".join(f"line {number}\n" for number in range(40))
    async with stored(tmp_path, size=size) as it:
        it.ui.push_screen(TrustScreen(about, lambda: it.ui.appearance.styles, silence=0))
        await it.sees("Its files can run", "y trust it", "n leave its", "scroll")
        for _ in range(12):
            await it.pilot.press("pagedown")
        await it.sees("line 39", "y trust it", "n leave its", "scroll")
