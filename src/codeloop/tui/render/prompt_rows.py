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
_MAX_NAME_LENGTH = 60
"""Characters of an attachment's name."""
_MAX_ROWS, _FOLDED_END_ROWS = 30, 10
"""Rows of a prompt that is shown in full; of a longer one, how many rows of its start and of its end are shown."""


def draw_prompt(item: PromptItem, canvas: Canvas) -> list[Row]:
    """Return a prompt as rows on a panel, without the texts that the program added to it."""
    styles = canvas.styles
    background = "background_panel"
    text_style = styles.of("text_muted" if item.is_undone else "text", "strike" if item.is_undone else "", background)
    bar = "border" if item.is_undone else "primary"
    inner = max(canvas.width - 3, 4)
    rows: list[Row] = []
    for part in item.parts:
        if isinstance(part, TextPart) and not part.synthetic:
            for line in escape_answer_controls(part.text.strip("\n")).split("\n"):
                rows += wrap_line([Segment(expand_tabs(line), text_style)], inner)
    muted_style = styles.of("text_muted", "", background)
    # A long paste would push the answer off the screen.
    if len(rows) > _MAX_ROWS:
        note_style = muted_style + styles.of("text_muted", "italic") + Style(meta={"toggle": item.key})
        if item.is_open:
            rows.append([Segment("▴ show less", note_style)])
        else:
            hidden_note = [Segment(f"… {len(rows) - 2 * _FOLDED_END_ROWS:,} more rows; a click shows them", note_style)]
            rows = [*rows[:_FOLDED_END_ROWS], cut_line(hidden_note, inner), *rows[-_FOLDED_END_ROWS:]]
    fill = styles.of("text", "", background)
    before = [Segment(PROMPT_BAR, styles.of(bar, "", background)), Segment(" ", fill)]
    chips = [chip for part in item.parts for chip in _draw_chip(part, muted_style)]
    chip_rows = wrap_line(chips, inner) if chips else []
    # A prompt without text and attachments still has one row.
    panel_rows: list[Row] = [pad_row([*before, *row], canvas.width, fill) for row in rows or ([] if chips else [[]])]
    caption_rows = [pad_row([*before, *row], canvas.width, fill) for row in chip_rows]
    pictures = [part for part in item.parts if isinstance(part, FilePart) and is_picture(part) and not item.is_undone]
    panel_rows += [PictureRow(row) for row in caption_rows] if pictures else caption_rows
    for part in pictures:
        panel_rows += reserve_rows(part, canvas.pictures, canvas.width, before, fill)
    return panel_rows


def _draw_chip(part: Part, style: Style) -> Row:
    """Return the segments that stand for an attachment or a mention, in brackets; a click on a picture opens it."""
    match part:
        case FilePart(id=key, mime=mime):
            chip_style = style + Style(meta={"image": key}) if mime.startswith("image/") else style
            return [Segment(describe_attachment(part), chip_style), Segment("  ", style)]
        case AgentPart(name=name):
            return [Segment(f"[@{one_line(name, _MAX_NAME_LENGTH)}]  ", style)]
        case SubtaskPart(agent=agent, description=description):
            return [
                Segment(f"[{one_line(agent, _MAX_NAME_LENGTH)}: {one_line(description, _MAX_NAME_LENGTH)}]  ", style)
            ]
        case _:
            return []
