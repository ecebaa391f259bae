"""The editing actions that key bindings name, such as moving by words and deleting,
as functions by their id.
"""

from collections.abc import Callable

from codeloop.tui.editor.buffer import Buffer
from codeloop.tui.editor.line_layout import LineLayout
from codeloop.tui.editor.words import find_blank_backward, find_end_forward, find_start_backward

EditAction = Callable[[Buffer, LineLayout], object]
_OffsetFinder = Callable[[Buffer, LineLayout], int]
"""Finds the offset to which the cursor moves, or up to which text is deleted."""
_END_COLUMN = 1 << 30
"""A column behind the end of every row."""


def _make_move(find_offset: _OffsetFinder, *, select: bool = False) -> EditAction:
    """Return the action that moves the cursor to an offset;
    `select`: it extends the selection to there.
    """
    return lambda buffer, layout: buffer.move(find_offset(buffer, layout), select=select)


def _make_deletion(find_offset: _OffsetFinder, *, kill: bool = True) -> EditAction:
    """Return the action that deletes the selection, or without one, up to an offset;
    `kill`: yank inserts it again.
    """

    def delete(buffer: Buffer, layout: LineLayout) -> None:
        start, end = buffer.selection
        if start == end:
            start, end = sorted((buffer.cursor, find_offset(buffer, layout)))
        buffer.delete(start, end, kill=kill)

    return delete


def _make_vertical_move(step: int, *, select: bool = False) -> EditAction:
    """Return the action that moves the cursor by rows;
    in the first and last row, to the start or end of the text.
    """

    def move(buffer: Buffer, layout: LineLayout) -> None:
        row, column = layout.locate(buffer.cursor)
        target_column = column if buffer.column is None else buffer.column
        if not 0 <= row + step < layout.row_count:
            buffer.move(0 if step < 0 else len(buffer.text), select=select)
        else:
            buffer.move(layout.find_offset(row + step, target_column), select=select)
        # Set again, since moving the cursor has reset it.
        buffer.column = target_column

    return move


def _find_row_start(buffer: Buffer, layout: LineLayout) -> int:
    row, _ = layout.locate(buffer.cursor)
    return layout.find_offset(row, 0)


def _find_row_end(buffer: Buffer, layout: LineLayout) -> int:
    row, _ = layout.locate(buffer.cursor)
    return layout.find_offset(row, _END_COLUMN)


def _find_cut_start(buffer: Buffer, _layout: LineLayout) -> int:
    """Return the start of the line; if the cursor is there, the offset before it,
    so that the lines are joined.
    """
    start = buffer.find_line_start()
    return start if start < buffer.cursor else buffer.find_previous_offset()


def _find_cut_end(buffer: Buffer, _layout: LineLayout) -> int:
    """Return the end of the line; if the cursor is there, the offset behind it,
    so that the lines are joined.
    """
    end = buffer.find_line_end()
    return end if end > buffer.cursor else buffer.find_next_offset()


def _delete_line(buffer: Buffer, _layout: LineLayout) -> None:
    buffer.delete(
        buffer.find_line_start(), min(buffer.find_line_end() + 1, len(buffer.text)), kill=True
    )


def _select_all(buffer: Buffer, _layout: LineLayout) -> None:
    buffer.move(0)
    buffer.move(len(buffer.text), select=True)


_OFFSET_FINDERS: dict[str, _OffsetFinder] = {
    "left": lambda buffer, _: buffer.find_previous_offset(),
    "right": lambda buffer, _: buffer.find_next_offset(),
    "line_home": lambda buffer, _: buffer.find_line_start(),
    "line_end": lambda buffer, _: buffer.find_line_end(),
    "visual_line_home": _find_row_start,
    "visual_line_end": _find_row_end,
    "buffer_home": lambda _buffer, _layout: 0,
    "buffer_end": lambda buffer, _: len(buffer.text),
    "word_forward": lambda buffer, _: find_end_forward(buffer.text, buffer.cursor),
    "word_backward": lambda buffer, _: find_start_backward(buffer.text, buffer.cursor),
}

EDIT_ACTIONS: dict[str, EditAction] = {
    **{f"input_move_{name}": _make_move(_OFFSET_FINDERS[name]) for name in ("left", "right")},
    **{
        f"input_{name}": _make_move(find_offset)
        for name, find_offset in _OFFSET_FINDERS.items()
        if name not in {"left", "right"}
    },
    **{
        f"input_select_{name}": _make_move(find_offset, select=True)
        for name, find_offset in _OFFSET_FINDERS.items()
    },
    "input_move_up": _make_vertical_move(-1),
    "input_move_down": _make_vertical_move(1),
    "input_select_up": _make_vertical_move(-1, select=True),
    "input_select_down": _make_vertical_move(1, select=True),
    "input_select_all": _select_all,
    "input_newline": lambda buffer, _: buffer.type_text("\n"),
    "input_backspace": _make_deletion(_OFFSET_FINDERS["left"], kill=False),
    "input_delete": _make_deletion(_OFFSET_FINDERS["right"], kill=False),
    "input_delete_line": _delete_line,
    "input_delete_to_line_start": _make_deletion(_find_cut_start),
    "input_delete_to_line_end": _make_deletion(_find_cut_end),
    "input_delete_word_forward": _make_deletion(_OFFSET_FINDERS["word_forward"]),
    "input_delete_word_backward": _make_deletion(
        lambda buffer, _: find_blank_backward(buffer.text, buffer.cursor)
    ),
    # Not `insert`, which would escape the chips that were cut.
    "input_yank": lambda buffer, _: buffer.replace(*buffer.selection, buffer.killed_text),
    "input_undo": lambda buffer, _: buffer.undo(),
    "input_redo": lambda buffer, _: buffer.redo(),
}
"""The editing actions by their id in `keys/prompt_bindings.py`;
the prompt has the other actions.
"""
