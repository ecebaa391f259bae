"""Reads and searches in a row are folded to one line, whatever messages they are in."""

from collections.abc import Callable

import pytest

from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.part import Part
from codeloop.tui.render.calls.folded_calls import draw_fold
from codeloop.tui.render.renderer import Renderer
from codeloop.tui.state.conversation_items import FoldItem
from codeloop.tui.state.session_view import SessionView
from tests.tui import parts
from tests.tui.drawing import canvas, plain
from tests.tui.stored.client import StoredClient
from tests.tui.stored.stored_messages import Talk


def read(name: str) -> Part:
    return parts.done("read", {"filePath": f"{parts.DIRECTORY}/{name}"}, "").part


def grep(pattern: str) -> Part:
    return parts.done("grep", {"pattern": pattern}, "", {"matches": 2, "files": 1}).part


def failed_read() -> Part:
    return parts.failed("read", {"filePath": "/nowhere"}, "There is no such file.").part


def thought() -> Part:
    return parts.thought("I look at the test.").part


def edit() -> Part:
    return parts.done("edit", {"filePath": f"{parts.DIRECTORY}/a.py"}, "").part


def show(view: SessionView) -> list[str]:
    """Return the rows of the conversation, without blank ones."""
    view.take_changes()
    draw = Renderer(canvas(100)).render
    items = [item for message_id in view.log.ids for item in view.list_items(message_id)]
    rows = [row for item in items for row in plain(draw(item)).split("\n")]
    return [row.strip() for row in rows if row.strip() and "steps" not in row]


def open_view(*answers: list[Part]) -> tuple[SessionView, list[MessageWithParts]]:
    """Return a session with one answer for each list of parts, and its messages."""
    client = StoredClient()
    talk = Talk(client)
    talk.prompt(parts.text("go"))
    for given in answers:
        talk.answer(*given, finish="tool-calls")
    view = SessionView(client.session())
    view.load(talk.messages, None)
    return view, talk.messages


def test_calls_of_several_messages_are_one_line_that_opens() -> None:
    view, _ = open_view([read("a.py"), read("b.py")], [thought(), read("c.py"), grep("TODO")])
    line = "✓ read 3 files, searched 1 time  a.py, b.py, c.py, TODO"
    assert show(view)[1:] == [line]
    fold = next(
        item
        for each in view.log.ids
        for item in view.list_items(each)
        if isinstance(item, FoldItem)
    )
    view.toggle(fold.key, view.log.ids[1])
    rows = show(view)
    assert rows[1:4] == ["✓ read 3 files, searched 1 time", "✓ read a.py", "✓ read b.py"]
    assert rows[4].startswith("▸ Thought")
    assert rows[5] == "✓ read c.py"
    assert rows[6].startswith("✓ grep TODO")
    view.toggle(fold.key, view.log.ids[1])
    assert show(view)[1:] == [line]


def test_each_message_that_comes_joins_the_line() -> None:
    whole, messages = open_view(
        [read("a.py")], [read("b.py")], [thought()], [grep("x")], [edit()], [read("c.py")]
    )
    view = SessionView(whole.session)
    view.load(messages[:2], None)
    assert show(view)[1:] == ["✓ read a.py"]
    for message in messages[2:]:
        view.log.add([message])
        show(view)
    drawn = show(view)
    assert drawn[1:] == [
        "✓ read 2 files, searched 1 time  a.py, b.py, x",
        "✓ edit a.py",
        "✓ read c.py",
    ]
    assert drawn == show(whole)


@pytest.mark.parametrize("between", [edit, failed_read, lambda: parts.text("I have seen enough.")])
def test_what_must_be_seen_ends_the_row(between: Callable[[], Part]) -> None:
    view, _ = open_view([read("a.py")], [between()], [read("b.py")])
    rows = show(view)
    assert "✓ read a.py" in rows
    assert "✓ read b.py" in rows


def test_an_opened_call_stands_by_itself() -> None:
    view, messages = open_view([read("a.py"), read("b.py"), grep("x"), grep("y"), grep("z")])
    show(view)
    call = messages[1].parts[2]
    view.toggle(call.id, messages[1].info.id)
    rows = show(view)
    assert rows[1] == "✓ read 2 files  a.py, b.py"
    assert rows[2].startswith("✓ grep x")
    assert rows[-1] == "✓ searched 2 times  y, z"


def test_messages_that_are_removed_leave_the_rest_as_it_is() -> None:
    view, messages = open_view([read("a.py")], [read("b.py")], [read("c.py")])
    assert show(view)[1:] == ["✓ read 3 files  a.py, b.py, c.py"]
    view.log.replace_newest(messages[:3], is_all=True)
    assert show(view)[1:] == ["✓ read 2 files  a.py, b.py"]
    view.log.replace_newest(messages[:2], is_all=True)
    assert show(view)[1:] == ["✓ read a.py"]


def test_everything_opens_and_closes_at_once() -> None:
    output = "\n".join(f"line {number}" for number in range(30))
    view, _ = open_view(
        [read("a.py"), read("b.py"), parts.done("bash", {"command": "x"}, output).part]
    )
    folded = show(view)
    assert "line 3" not in folded
    assert view.toggle_all()
    assert "line 3" in show(view)
    assert not view.toggle_all()
    assert show(view) == folded


def test_only_the_latest_list_of_tasks_is_shown() -> None:
    def write(status: str) -> Part:
        todos = [
            {"content": "Find it", "status": "completed"},
            {"content": "Mend it", "status": status},
        ]
        return parts.done("todowrite", {"todos": todos}, "").part

    view, messages = open_view([write("in_progress")], [write("completed")])
    assert show(view)[1:] == [
        "✓ todos 1 of 2 done, now: Mend it",
        "✓ todos 2 of 2 done",
        "[x] Find it",
        "[x] Mend it",
    ]
    view.log.replace_newest(messages[:2], is_all=True)
    assert show(view)[1:] == ["✓ todos 1 of 2 done", "[x] Find it", "[>] Mend it"]


def test_a_line_is_no_wider_than_the_screen() -> None:
    calls = tuple(
        part for name in "abcdefgh" if (part := parts.done("grep", {"pattern": name * 30}, "").part)
    )
    (row,) = draw_fold(FoldItem("key", calls), canvas(40))
    assert plain([row]).startswith("✓ searched 8 times  aaaa")
    assert len(plain([row])) <= 40
