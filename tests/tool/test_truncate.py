import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeloop.kit.text.truncate import Keep, count_lines
from codeloop.schema.limits import TOOL_OUTPUT_BYTES, TOOL_OUTPUT_LINES
from codeloop.tool.tool import ToolResult
from codeloop.tool.truncate import truncate_output
from tests.support.examples import scale_examples


def test_short_output_stays_and_is_marked_as_whole(tmp_path: Path) -> None:
    result = truncate_output(ToolResult("t", "short", {"count": 1}), tmp_path)
    assert result == ToolResult("t", "short", {"count": 1, "truncated": False})
    assert list(tmp_path.iterdir()) == []


def test_a_tools_own_mark_of_a_cut_stays(tmp_path: Path) -> None:
    assert truncate_output(ToolResult("t", "x", {"truncated": True}), tmp_path).metadata == {
        "truncated": True
    }


def test_many_lines_keep_their_head_and_name_the_file_with_the_whole(tmp_path: Path) -> None:
    text = "".join(f"line {n}\n" for n in range(5000))
    result = truncate_output(ToolResult("t", text), tmp_path / "scratch")
    path = Path(result.metadata["outputPath"])
    assert path.read_text() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.name.startswith("tool_")
    assert result.output.startswith("line 0\nline 1\n")
    assert path.name in result.output.splitlines()[-1]
    assert result.metadata["truncated"] is True


def test_the_tail_is_kept_with_the_note_in_the_first_line(tmp_path: Path) -> None:
    text = "".join(f"line {n}\n" for n in range(5000))
    result = truncate_output(ToolResult("t", text), tmp_path, "tail")
    assert result.output.endswith("line 4998\nline 4999\n")
    assert Path(result.metadata["outputPath"]).name in result.output.splitlines()[0]


@pytest.mark.slow
def test_one_line_of_50_mb_is_cut(tmp_path: Path) -> None:
    result = truncate_output(ToolResult("t", "x" * 50_000_000), tmp_path)
    assert len(result.output) <= TOOL_OUTPUT_BYTES.value
    assert Path(result.metadata["outputPath"]).stat().st_size == 50_000_000


@pytest.mark.parametrize("keep", ["head", "tail"])
def test_of_lines_of_megabytes_head_and_tail_are_shown_and_all_other_lines(
    tmp_path: Path, keep: Keep
) -> None:
    result = truncate_output(ToolResult("t", f"before\n{'x' * 3_000_000}\nafter\n"), tmp_path, keep)
    assert len(result.output) < 2_500
    assert all(
        each in result.output
        for each in ("before\nxxx", "2998000 characters", "\nafter", "[long lines are cut;")
    )
    assert Path(result.metadata["outputPath"]).stat().st_size == 3_000_014
    short = f"[{'1,' * 20_000}]"
    assert truncate_output(ToolResult("t", short), tmp_path).output == short, (
        "what fits stays as it is"
    )


def test_the_given_result_is_not_changed(tmp_path: Path) -> None:
    before = ToolResult("t", "a\n" * 9, {"a": 1})
    truncate_output(before, tmp_path, lines=5)
    assert before == ToolResult("t", "a\n" * 9, {"a": 1})


def test_a_folder_that_cannot_be_written_is_said_and_the_output_still_cut(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = truncate_output(ToolResult("t", "a\n" * 9000), tmp_path / "file" / "scratch")
    assert "could not be saved" in result.output
    assert "outputPath" not in result.metadata
    assert result.metadata["truncated"] is True


def test_text_that_is_no_unicode_is_made_storable(tmp_path: Path) -> None:
    assert truncate_output(ToolResult("t", "a\udcffb"), tmp_path).output == "a?b"


@settings(max_examples=scale_examples(40))
@given(st.text(alphabet="ab\nä€", max_size=4000), st.integers(10, 60), st.integers(800, 2000))
def test_the_bounds_hold_for_any_text(
    tmp_path_factory: pytest.TempPathFactory, text: str, lines: int, size: int
) -> None:
    scratch = tmp_path_factory.mktemp("scratch")
    for keep in ("head", "tail"):
        result = truncate_output(ToolResult("t", text), scratch, keep, lines=lines, size=size)
        assert len(result.output.encode()) <= size
        assert count_lines(result.output) <= lines
        if result.metadata["truncated"]:
            path = Path(result.metadata["outputPath"])
            assert path.read_text() == text
            path.unlink()


def test_the_bounds_are_those_of_the_contract() -> None:
    assert (TOOL_OUTPUT_LINES.value, TOOL_OUTPUT_BYTES.value) == (2000, 51200)
