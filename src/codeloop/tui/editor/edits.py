"""The editing actions that the prompt's key bindings name, such as moving by words, deleting and undoing."""

from collections.abc import Callable

from codeloop.tui.editor.buffer import Buffer
from codeloop.tui.editor.line_layout import Layout
from codeloop.tui.editor.words import after_word, before_blank, before_word

Action = Callable[[Buffer, Layout], object]
_Target = Callable[[Buffer, Layout], int]


def _make_move(target: _Target, *, select: bool = False) -> Action:
    return lambda buffer, layout: buffer.move(target(buffer, layout), select=select)


def _make_cut(target: _Target, *, kill: bool = True) -> Action:
    def cut(buffer: Buffer, layout: Layout) -> None:
        start, end = buffer.selection
        if start == end:
            start, end = sorted((buffer.cursor, target(buffer, layout)))
        buffer.delete(start, end, kill=kill)

    return cut


def _make_vertical_move(step: int, *, select: bool = False) -> Action:
    def move(buffer: Buffer, layout: Layout) -> None:
        row, column = layout.locate(buffer.cursor)
        target_column = column if buffer.column is None else buffer.column
        if not 0 <= row + step < layout.rows:
            buffer.move(0 if step < 0 else len(buffer.text), select=select)
        else:
            buffer.move(layout.offset(row + step, target_column), select=select)
        buffer.column = target_column

    return move


def _find_row_start(buffer: Buffer, layout: Layout) -> int:
    return layout.offset(layout.locate(buffer.cursor)[0], 0)


def _find_row_end(buffer: Buffer, layout: Layout) -> int:
    return layout.offset(layout.locate(buffer.cursor)[0], 1 << 30)


def _find_line_start(buffer: Buffer, _layout: Layout) -> int:
    """Return the start of the line; if the cursor is there, the offset before it, so that the lines are joined."""
    start = buffer.line_start()
    return start if start < buffer.cursor else buffer.previous_offset()


def _find_line_end(buffer: Buffer, _layout: Layout) -> int:
    end = buffer.line_end()
    return end if end > buffer.cursor else buffer.next_offset()


def _delete_line(buffer: Buffer, _layout: Layout) -> None:
    buffer.delete(buffer.line_start(), min(buffer.line_end() + 1, len(buffer.text)), kill=True)


def _select_all(buffer: Buffer, _layout: Layout) -> None:
    buffer.move(0)
    buffer.move(len(buffer.text), select=True)


_TARGETS: dict[str, _Target] = {
    "left": lambda buffer, _: buffer.previous_offset(),
    "right": lambda buffer, _: buffer.next_offset(),
    "line_home": lambda buffer, _: buffer.line_start(),
    "line_end": lambda buffer, _: buffer.line_end(),
    "visual_line_home": _find_row_start,
    "visual_line_end": _find_row_end,
    "buffer_home": lambda _buffer, _layout: 0,
    "buffer_end": lambda buffer, _: len(buffer.text),
    "word_forward": lambda buffer, _: after_word(buffer.text, buffer.cursor),
    "word_backward": lambda buffer, _: before_word(buffer.text, buffer.cursor),
}

EDITS: dict[str, Action] = {
    **{f"input_move_{name}": _make_move(_TARGETS[name]) for name in ("left", "right")},
    **{f"input_{name}": _make_move(target) for name, target in _TARGETS.items() if name not in {"left", "right"}},
    **{f"input_select_{name}": _make_move(target, select=True) for name, target in _TARGETS.items()},
    "input_move_up": _make_vertical_move(-1),
    "input_move_down": _make_vertical_move(1),
    "input_select_up": _make_vertical_move(-1, select=True),
    "input_select_down": _make_vertical_move(1, select=True),
    "input_select_all": _select_all,
    "input_newline": lambda buffer, _: buffer.type("\n"),
    "input_backspace": _make_cut(_TARGETS["left"], kill=False),
    "input_delete": _make_cut(_TARGETS["right"], kill=False),
    "input_delete_line": _delete_line,
    "input_delete_to_line_start": _make_cut(_find_line_start),
    "input_delete_to_line_end": _make_cut(_find_line_end),
    "input_delete_word_forward": _make_cut(_TARGETS["word_forward"]),
    "input_delete_word_backward": _make_cut(lambda buffer, _: before_blank(buffer.text, buffer.cursor)),
    "input_yank": lambda buffer, _: buffer.replace(*buffer.selection, buffer.cut_text),
    "input_undo": lambda buffer, _: buffer.undo(),
    "input_redo": lambda buffer, _: buffer.redo(),
}
"""The editing actions by their id in `keys/prompt_bindings.py`; the prompt has the other actions."""
