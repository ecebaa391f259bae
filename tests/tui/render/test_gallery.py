"""Every item of the gallery looks as it is written down in `golden/`: text,
and style where it changes.

`CODELOOP_GOLDEN=write` writes them anew: read the difference.
"""

import os
from pathlib import Path

import pytest

from tests.tui.drawing import draw, styled
from tests.tui.gallery import ITEMS

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("width", [80, 140])
def test_every_item_looks_as_it_did(width: int) -> None:
    shown = "".join(f"==== {name}\n{styled(draw(item, width))}\n" for name, item in ITEMS.items())
    file = GOLDEN / f"{width}.txt"
    if os.environ.get("CODELOOP_GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(shown)
    assert shown == file.read_text()
