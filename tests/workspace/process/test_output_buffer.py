"""Output kept in flat memory: what a model reads of it, what a screen shows,
and the file with the whole.
"""

import itertools
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from codeloop.workspace.process.output_buffer import OutputBuffer, TakenOutput
from codeloop.workspace.tool_bounds import USUAL_BOUNDS, ToolBounds


def taken(folder: Path, *chunks: bytes, bounds: ToolBounds = USUAL_BOUNDS) -> TakenOutput:
    buffer = OutputBuffer(folder, bounds)
    for chunk in chunks:
        buffer.feed(chunk)
    result = buffer.take()
    buffer.close()
    return result


def test_short_output_needs_no_file_and_colours_are_for_the_screen(tmp_path: Path) -> None:
    found = taken(tmp_path, b"\x1b[31mred\x1b[0m\n", b"b\n" * 50)
    assert found == (
        "red\nb\n... the line above 49 times more\n",
        "\x1b[31mred\x1b[0m\n" + "b\n" * 50,
        False,
        None,
    )
    assert not list(tmp_path.iterdir())


def test_what_was_written_over_is_kept_whole_in_the_file_that_is_named(tmp_path: Path) -> None:
    printed = b"".join(b"%d%%\r" % n for n in range(101)) + b"\ndone\n"
    found = taken(tmp_path, printed)
    assert found.path is not None
    assert found.path.read_bytes() == printed
    assert (
        found.text
        == f"100%\ndone\n\n[of what was written over, the last state is shown; the whole is in {found.path.name}]"
    )
    assert not found.is_cut


@pytest.mark.slow
def test_long_output_keeps_head_and_tail_and_counts_what_is_between(tmp_path: Path) -> None:
    printed = b"".join(b"\x1b[1mline %d\x1b[0m\n" % n for n in range(300_000))
    found = taken(tmp_path, *(printed[at : at + 65536] for at in range(0, len(printed), 65536)))
    assert found.text.startswith("line 0\nline 1\n")
    assert found.text.endswith("\nline 299998\nline 299999\n")
    assert "\x1b" not in found.text
    assert found.path is not None
    assert found.path.read_bytes() == printed


@pytest.mark.slow
def test_memory_stays_flat(tmp_path: Path) -> None:
    buffer = OutputBuffer(tmp_path)
    chunk = b"".join(b"%d%% of it\r" % n for n in range(5_000))
    tracemalloc.start()
    for _ in range(400):
        buffer.feed(chunk)
    buffer.take()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    buffer.close()
    assert peak < 16 * 1024 * 1024


def without_name(output: TakenOutput) -> str:
    """Return the text without the name of the file, which is another one each time."""
    return output.text if output.path is None else output.text.replace(output.path.name, "")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@example(b"1%\r2%\ndone\n", [4])
@example(b"same\n" * 80, [7, 200])
@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=5))
def test_how_the_output_comes_in_pieces_does_not_matter(
    tmp_path: Path, printed: bytes, cuts: list[int]
) -> None:
    edges = [0, *sorted(cuts), len(printed)]
    pieces = [printed[a:b] for a, b in itertools.pairwise(edges)]
    whole, parts = taken(tmp_path, printed), taken(tmp_path, *pieces)
    assert without_name(whole) == without_name(parts)


def test_the_configured_bounds_count_in_both_directions(tmp_path: Path) -> None:
    printed = "".join(f"line {number} {'x' * 80}\n" for number in range(1_000)).encode()
    assert len(taken(tmp_path, printed).text) < 31_000
    wide = taken(tmp_path, printed, bounds=ToolBounds(bytes=200_000))
    assert (wide.text, wide.is_cut) == (printed.decode(), False)
    narrow = taken(tmp_path, printed, bounds=ToolBounds(bytes=2_000))
    assert len(narrow.text) < 2_000
    assert "\nline 999 " in narrow.text
    short = taken(tmp_path, printed, bounds=ToolBounds(lines=50))
    assert short.text.count("\n") < 50
    large = taken(tmp_path, printed * 30, bounds=ToolBounds(bytes=4_000_000, lines=100_000))
    assert not large.is_cut
