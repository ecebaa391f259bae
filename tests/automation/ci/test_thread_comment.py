"""The one comment: its record, and what a model may not do with it."""

from pathlib import Path

import pytest

from codeloop.schema.errors import CodeloopError
from codeloop_automation.ci.event_runner import (
    ThreadRecord,
    mark_done,
    read_record,
    render_comment,
)
from codeloop_automation.ci.output_files import write_output


def test_a_record_is_read_back_from_the_start_of_a_comment_only() -> None:
    record = ThreadRecord(done=("comment-1",), cost=0.5, run="9", until=77)
    text = render_comment(record, "done", "The answer.", ("$0.50", ""))
    assert read_record(text) == record
    assert read_record(f"x {text}") == ThreadRecord()
    assert read_record('<!-- codeloop-thread {"done": 3} -->') == ThreadRecord()
    assert text.endswith("**codeloop** · done\n\nThe answer.\n\n---\n$0.50\n")


def test_a_link_in_place_of_the_output_is_never_followed(tmp_path: Path) -> None:
    own, output = tmp_path / "home" / ".bashrc", tmp_path / "work" / "codeloop-ci"
    own.parent.mkdir()
    own.write_text("mine")
    output.mkdir(parents=True)
    (output / "result.md").symlink_to(own)
    assert write_output(output, "result.md", "text").read_text() == "text"
    (output / "result.md").unlink()
    output.rmdir()
    output.symlink_to(own.parent)
    assert write_output(output, ".bashrc", "text") == output / ".bashrc"
    assert own.read_text() == "mine"
    output.joinpath(".bashrc").unlink()
    output.rmdir()
    output.parent.rmdir()
    output.parent.symlink_to(own.parent)
    with pytest.raises(CodeloopError, match="a folder on the way is a link"):
        write_output(output, ".bashrc", "text")


def test_done_requests_are_kept_up_to_a_bound() -> None:
    record = ThreadRecord()
    for number in range(300):
        record = mark_done(record, f"comment-{number}", 0.01)
    assert (len(record.done), record.done[-1], record.cost) == (200, "comment-299", 3.0)
