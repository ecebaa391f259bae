"""What calls of each tool say, beside how they look (which the gallery holds)."""

from typing import Any

import msgspec
import pytest

from codeloop.kit.text.diff import make_unified_diff
from codeloop.schema.part import ToolPart, ToolStateRunning
from codeloop.schema.wire import replace
from codeloop.tui.render.calls.call_renderer import draw_call
from codeloop.tui.state.conversation_items import ToolItem
from tests.tui.drawing import canvas, draw, plain, styled
from tests.tui.gallery import CALLS, DIFF, TEST_RUN
from tests.tui.parts import DIRECTORY, NOW, done, failed, pending, running


def first(item: ToolItem, width: int = 80) -> str:
    return plain(draw(item, width)).split("\n")[0]


def test_without_details_a_call_is_one_row() -> None:
    for item in CALLS.values():
        assert len(draw(item, details=False)) == 1 or (isinstance(item, ToolItem) and item.is_open)


def test_a_running_command_shows_the_end_of_its_output_and_the_time() -> None:
    item = running(
        "bash", {"command": "make"}, {"output": "\n".join(map(str, range(100)))}, seconds=65
    )
    rows = plain(draw(item)).split("\n")
    assert rows[0] == "● bash make  1 min 5 s"
    assert rows[1] == "  … 96 more lines above  a click shows all"
    assert rows[-1] == "  99"
    later = draw_call(item, canvas(80), NOW + 5_000)
    assert plain(later).startswith("● bash make  1 min 10 s")


def test_a_servers_tool_shows_how_far_it_is_while_it_works() -> None:
    metadata = {"progress": 2, "total": 9, "message": "page 2"}
    item = running("docs_index", {"path": "a"}, metadata)
    assert isinstance(item.part.state, ToolStateRunning)
    item = replace(
        item, part=replace(item.part, state=replace(item.part.state, title="page 2 \x1b[31m"))
    )
    assert first(item) == "● docs_index path: a  page 2 ␛[31m · 4.2 s"
    assert (
        first(done("docs_index", {"path": "a"}, metadata=metadata, title="page 2"))
        == "✓ docs_index path: a"
    )


def test_an_open_command_shows_all_of_its_output() -> None:
    output = "\n".join(map(str, range(100)))
    assert plain(draw(done("bash", {"command": "make"}, output, is_open=True))).count("\n") == 100


@pytest.mark.parametrize("printed", ["", "begun"])
def test_of_a_command_that_was_stopped_its_output_is_shown_without_words_for_the_model(
    printed: str,
) -> None:
    kept = f"{printed}\n\n<shell_metadata>\nThe command was aborted; all its processes were ended.\n</shell_metadata>"
    metadata = {"output": kept, "interrupted": True}
    assert plain(draw(failed("bash", {"command": "make"}, "interrupted", metadata))).split("\n")[
        1:
    ] == (["  begun"] if printed else [])


def test_lines_that_the_tool_left_out_are_counted() -> None:
    item = done("bash", {"command": "make"}, "a\nb", {"truncated": True, "lines": 5_000})
    assert "… 4,998 more lines above" in plain(draw(item))


def test_a_click_on_what_is_folded_opens_the_call() -> None:
    assert styled(draw(CALLS["bash-failed"])).count("toggle=prt_call") >= 2


def test_a_subagent_is_entered_by_its_heading() -> None:
    assert "open=ses_child" in styled(draw(CALLS["task-running"])).split("\n")[0]


def test_the_key_that_shows_a_subagent_stands_beside_its_link() -> None:
    item = CALLS["task-running"]
    assert isinstance(item, ToolItem)
    for width, end in (
        (80, "  open the subagent's session  ctrl+x down"),
        (40, "  open the subagent's session"),
    ):
        rows = draw_call(item, replace(canvas(width), child_key="ctrl+x down"), NOW)
        assert plain(rows).split("\n")[-1] == end


def test_arguments_that_stream_in_show_the_file_and_how_far_they_are() -> None:
    raw = '{"filePath": "' + DIRECTORY + '/src/a.py", "content": "1\\n2\\n3\\n'
    assert first(pending("write", raw=raw)) == "○ write src/a.py  3 lines so far"


def test_a_heading_fits_and_keeps_its_notes() -> None:
    item = done("bash", {"command": "echo " + "word " * 50}, "", {"exit": 3})
    assert first(item, 40).endswith("…  exit 3")
    assert len(first(item, 40)) <= 40


@pytest.mark.parametrize(
    ("metadata", "word"),
    [
        ({"denied": True}, "not allowed"),
        ({"rejected": True}, "you said no"),
        ({"interrupted": True}, "interrupted"),
    ],
)
def test_how_a_call_ended_without_a_result(metadata: dict[str, bool], word: str) -> None:
    assert (
        first(failed("bash", {"command": "x"}, "because", metadata))
        == f"{'✗' if word == 'not allowed' else '■'} bash x  {word}"
    )


def test_a_rejection_shows_what_the_person_said() -> None:
    given = {"denied": True, "said": "use pip"}
    rows = plain(
        draw(
            failed(
                "bash",
                {"command": "x"},
                "The user rejected this bash call and said: use pip",
                given,
            )
        )
    )
    assert rows == "■ bash x  you said no\n  “use pip”"


def test_what_was_asked_is_not_shown_twice() -> None:
    assert len(draw(running("edit", {"filePath": "a.py"}, {"diff": DIFF}, is_asking=True))) == 1


def test_odd_input_and_metadata_break_nothing() -> None:
    odd = {
        "filePath": 3,
        "command": {"a": 1},
        "todos": [1, "x", {}],
        "questions": [{}],
        "tool_calls": [{"tool": 1}],
    }
    for tool in (
        "bash",
        "read",
        "edit",
        "grep",
        "glob",
        "todowrite",
        "task",
        "question",
        "batch",
        "webfetch",
        "skill",
    ):
        for item in (
            done(tool, odd, "x"),
            done(tool, {}, ""),
            running(tool, odd),
            pending(tool, odd),
            failed(tool, {}, ""),
        ):
            assert draw(item)
    for metadata in (
        {"diff": 3},
        {"display": 3},
        {"todos": 3},
        {"output": 3},
        {"answers": 3},
        {"details": 3},
    ):
        for tool in ("bash", "read", "edit", "todowrite", "question", "batch"):
            assert draw(done(tool, {"questions": [{"question": "q"}]}, "x", metadata, is_open=True))


EVIL = "a\x1b[2J\x1b]52;c;eA==\x07b\u202ec\x9bd\u200be\r\n\tf"


def spoilt(value: Any) -> Any:
    """Return a part with each text spoilt that a model,
    a program or a server could have written.
    """
    match value:
        case str():
            return value if value.startswith(("data:", "msg", "ses", "prt")) else EVIL + value
        case list():
            return [spoilt(each) for each in value]
        case dict():
            kept = {"type", "status", "tool", "id", "mime", "time"}
            return {key: each if key in kept else spoilt(each) for key, each in value.items()}
        case _:
            return value


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("name", list(CALLS))
def test_nothing_in_a_call_steers_the_terminal_or_hides(name: str, is_open: bool) -> None:
    item = CALLS[name]
    assert isinstance(item, ToolItem)
    part = msgspec.convert(spoilt(msgspec.to_builtins(item.part)), ToolPart)
    for width in (24, 80, 140):
        shown = plain(draw(ToolItem("k", part, item.child, is_open, item.is_asking), width))
        assert not set(shown) & set("\x07\u202e\x9b\u200b")


@pytest.mark.slow
def test_a_large_diff_is_cheap_and_counted_as_the_tool_did() -> None:
    diff = make_unified_diff("/p/a.py", "", "line of text\n" * 50_000).patch
    counted = {"diff": diff, "filediff": {"additions": 50_000, "deletions": 0}}
    rows = plain(draw(done("write", {"filePath": "/p/a.py"}, "", counted))).split("\n")
    assert rows[0] == "✓ write /p/a.py  +50000 -0"
    assert rows[-1] == "  … 49,995 more lines  a click shows all"
    assert len(draw(done("write", {"filePath": "/p/a.py"}, "", counted, is_open=True))) < 2_010


def test_a_large_output_is_cheap_while_it_is_folded() -> None:
    item = done("bash", {"command": "x"}, TEST_RUN * 5_000)
    assert len(draw(item)) < 14


def test_paths_are_shown_relative_to_the_directory() -> None:
    assert first(done("read", {"filePath": f"{DIRECTORY}/src/a.py"})) == "✓ read src/a.py"
    assert first(done("read", {"filePath": "/etc/hosts"})) == "✓ read /etc/hosts"
