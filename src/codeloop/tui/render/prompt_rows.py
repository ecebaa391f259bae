"""Draws the prompts of a conversation: a bar on the left, the text as typed, and attachments."""

from rich.segment import Segment
from rich.style import Style

from codeloop.kit.text.terminal_text import escape_answer_controls, one_line
from codeloop.schema.part import AgentPart, FilePart, Part, SubtaskPart, TextPart
from codeloop.tui.render.attachments import describe_attachment
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.cells import cut_line, expand_tabs, pad_row, wrap_line
from codeloop.tui.render.picture_rows import PictureRow, is_picture, reserve_rows
from codeloop.tui.state.conversation_items import PromptItem

PROMPT_BAR = "▌"
_BACKGROUND = "background_panel"
_MAX_NAME_LENGTH = 60
"""Characters of an agent's name, and of a subagent's task."""
_MAX_ROWS, _FOLDED_END_ROWS = 30, 10
"""Rows of a prompt that is shown in full; of a longer one,
how many rows of its start and of its end are shown.
"""


def draw_prompt(item: PromptItem, canvas: Canvas) -> list[Row]:
    """Return a prompt as rows on a panel, without the texts that the program added to it."""
    styles = canvas.styles
    text_style = styles.of("text", on=_BACKGROUND)
    chip_style = styles.of("text_muted", on=_BACKGROUND)
    bar = Segment(PROMPT_BAR, styles.of("border" if item.is_undone else "primary", on=_BACKGROUND))
    prefix = [bar, Segment(" ", text_style)]
    inner_width = max(canvas.width - 3, 4)
    rows = _fold_text(item, _draw_text(item, canvas, inner_width), canvas, inner_width)
    chips = [segment for part in item.parts for segment in _draw_chip(part, chip_style)]
    if not rows and not chips:
        # A prompt without text and attachments still has one row.
        rows = [list[Segment]()]
    panel_rows: list[Row] = [pad_row([*prefix, *row], canvas.width, text_style) for row in rows]
    chip_rows = wrap_line(chips, inner_width) if chips else []
    caption_rows = [pad_row([*prefix, *row], canvas.width, text_style) for row in chip_rows]
    pictures = [
        part
        for part in item.parts
        if isinstance(part, FilePart) and is_picture(part) and not item.is_undone
    ]
    panel_rows += [PictureRow(row) for row in caption_rows] if pictures else caption_rows
    for part in pictures:
        panel_rows += reserve_rows(part, canvas.pictures, canvas.width, prefix, text_style)
    return panel_rows


def _draw_text(item: PromptItem, canvas: Canvas, width: int) -> list[Row]:
    """Return the rows of the text that the user typed; struck through if the prompt is undone."""
    colour, attributes = ("text_muted", "strike") if item.is_undone else ("text", "")
    style = canvas.styles.of(colour, attributes, _BACKGROUND)
    rows: list[Row] = []
    for part in item.parts:
        if isinstance(part, TextPart) and not part.synthetic:
            for line in escape_answer_controls(part.text.strip("\n")).split("\n"):
                rows += wrap_line([Segment(expand_tabs(line), style)], width)
    return rows


def _fold_text(item: PromptItem, rows: list[Row], canvas: Canvas, width: int) -> list[Row]:
    """Return the rows of a text; of a long one the start and the end, unless the item is open."""
    # A long paste would push the answer off the screen.
    if len(rows) <= _MAX_ROWS:
        return rows
    muted_style = canvas.styles.of("text_muted", on=_BACKGROUND)
    note_style = (
        muted_style + canvas.styles.of("text_muted", "italic") + Style(meta={"toggle": item.key})
    )
    if item.is_open:
        return [*rows, [Segment("▴ show less", note_style)]]
    note = Segment(
        f"… {len(rows) - 2 * _FOLDED_END_ROWS:,} more rows; a click shows them", note_style
    )
    return [*rows[:_FOLDED_END_ROWS], cut_line([note], width), *rows[-_FOLDED_END_ROWS:]]


def _draw_chip(part: Part, style: Style) -> Row:
    """Return an attachment, a mention or a subagent's task as a text in brackets;
    a click on a picture opens it.
    """
    match part:
        case FilePart():
            chip_style = style + Style(meta={"image": part.id}) if is_picture(part) else style
            return [Segment(describe_attachment(part), chip_style), Segment("  ", style)]
        case AgentPart(name=name):
            return [Segment(f"[@{one_line(name, _MAX_NAME_LENGTH)}]  ", style)]
        case SubtaskPart(agent=agent, description=description):
            return [
                Segment(
                    f"[{one_line(agent, _MAX_NAME_LENGTH)}: {one_line(description, _MAX_NAME_LENGTH)}]  ",
                    style,
                )
            ]
        case _:
            return []
