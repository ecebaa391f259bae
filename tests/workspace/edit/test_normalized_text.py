"""Positions in a text with plain line ends, and in the original."""

from hypothesis import given
from hypothesis import strategies as st

from codeloop.workspace.edit.normalized_text import NormalizedText


@given(st.text("ab\r\n", max_size=30), st.data())
def test_positions_lead_back_to_the_original(original: str, data: st.DataObject) -> None:
    source = NormalizedText(original)
    assert source.text == original.replace("\r\n", "\n")
    start = data.draw(st.integers(0, len(source.text)))
    end = data.draw(st.integers(start, len(source.text)))
    assert source.slice_original(start, end).replace("\r\n", "\n") == source.text[start:end]
    assert (
        source.slice_original(0, start)
        + source.slice_original(start, end)
        + source.slice_original(end, len(source.text))
        == original
    )
