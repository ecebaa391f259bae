"""Renders Jupyter notebooks as text for the tool `read`: each cell with its number,
kind and outputs.
"""

from collections.abc import Iterator

import msgspec

from codeloop.schema.wire import DECODE_ERRORS

# The characters of one output that are shown; the others are counted.
_MAX_OUTPUT_CHARS = 10_000
# A notebook stores a text whole, or as a list of its lines.
MultilineText = str | list[str]


class _OutputData(msgspec.Struct):
    """An output in several formats; only its text is shown."""

    plain: MultilineText = msgspec.field(default="", name="text/plain")
    png: MultilineText = msgspec.field(default="", name="image/png")
    jpeg: MultilineText = msgspec.field(default="", name="image/jpeg")


class _Output(msgspec.Struct):
    """An output of a cell: `text` as it was printed, `data` of a value,
    or `ename` and `evalue` of an error.
    """

    output_type: str = ""
    text: MultilineText = ""
    data: _OutputData = msgspec.field(default_factory=_OutputData)
    ename: str = ""
    evalue: str = ""


class _Cell(msgspec.Struct):
    cell_type: str
    source: MultilineText = ""
    outputs: list[_Output] = []


class _Notebook(msgspec.Struct):
    cells: list[_Cell]


def render_notebook(data: bytes) -> str | None:
    """Return the cells of a notebook (format 4) as text; None when the bytes are not a notebook."""
    try:
        notebook = msgspec.json.decode(data, type=_Notebook)
    except DECODE_ERRORS:
        return None
    blocks = [
        "\n".join(_format_cell(number, cell)) for number, cell in enumerate(notebook.cells, 1)
    ]
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _format_cell(number: int, cell: _Cell) -> Iterator[str]:
    yield f"[cell {number}: {cell.cell_type}]"
    yield _join_lines(cell.source)
    for output in cell.outputs:
        text = _format_output(output)
        if text:
            yield f"[output of cell {number}]"
            yield text


def _format_output(output: _Output) -> str:
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    text = _join_lines(output.text) or _join_lines(output.data.plain)
    picture_kinds = [
        kind for kind, data in (("PNG", output.data.png), ("JPEG", output.data.jpeg)) if data
    ]
    if picture_kinds:
        text = f"{text}\n({', '.join(picture_kinds)} picture, not shown)".strip()
    text = text.rstrip("\n")
    hidden = len(text) - _MAX_OUTPUT_CHARS
    return (
        text
        if hidden <= 0
        else f"{text[:_MAX_OUTPUT_CHARS]}\n({hidden} more characters, not shown)"
    )


def _join_lines(lines: MultilineText) -> str:
    return lines if isinstance(lines, str) else "".join(lines)
