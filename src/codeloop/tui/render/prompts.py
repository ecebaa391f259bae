"""Renders prompts: a bar on the left, the text as typed, and attachments."""

from rich.segment import Segment
from rich.style import Style

from codeloop.kit.terminal_text import escape_answer_controls, one_line
from codeloop.schema.part import AgentPart, FilePart, Part, SubtaskPart, TextPart
from codeloop.tui.render.attachments import describe_attachment
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.cells import cut_line, expand_tabs, pad_row, wrap_line
from codeloop.tui.render.picture_rows import PictureRow, is_picture, reserve_rows
from codeloop.tui.state.items import PromptItem

BAR = "▌"
_MAX_CHIP = 60
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
    if len(rows) > _MAX_ROWS:
        note = muted_style + styles.of("text_muted", "italic") + Style(meta={"toggle": item.key})
        if item.is_open:
            rows.append([Segment("▴ show less", note)])
        else:
            more = [Segment(f"… {len(rows) - 2 * _FOLDED_END_ROWS:,} more rows; a click shows them", note)]
            rows = [*rows[:_FOLDED_END_ROWS], cut_line(more, inner), *rows[-_FOLDED_END_ROWS:]]
    fill = styles.of("text", "", background)
    before = [Segment(BAR, styles.of(bar, "", background)), Segment(" ", fill)]
    chips = [chip for part in item.parts for chip in _draw_chip(part, muted_style)]
    chip_rows = wrap_line(chips, inner) if chips else []
    panel_rows: list[Row] = [pad_row([*before, *row], canvas.width, fill) for row in rows or ([] if chips else [[]])]
    words = [pad_row([*before, *row], canvas.width, fill) for row in chip_rows]
    pictures = [part for part in item.parts if isinstance(part, FilePart) and is_picture(part) and not item.is_undone]
    panel_rows += [PictureRow(row) for row in words] if pictures else words
    for part in pictures:
        panel_rows += reserve_rows(part, canvas.pictures, canvas.width, before, fill)
    return panel_rows


def _draw_chip(part: Part, style: Style) -> Row:
    """Return the segments of an attachment, in brackets; a click on a picture's shows the picture."""
    match part:
        case FilePart(id=key, mime=mime):
            look = style + Style(meta={"image": key}) if mime.startswith("image/") else style
            return [Segment(describe_attachment(part), look), Segment("  ", style)]
        case AgentPart(name=name):
            return [Segment(f"[@{one_line(name, _MAX_CHIP)}]  ", style)]
        case SubtaskPart(agent=agent, description=description):
            return [Segment(f"[{one_line(agent, _MAX_CHIP)}: {one_line(description, _MAX_CHIP)}]  ", style)]
        case _:
            return []
