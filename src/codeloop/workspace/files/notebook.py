"""Jupyter notebooks as text: each cell with its number, kind and outputs."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

_OUTPUT = 10_000  # characters of one output that are shown

Lines = str | list[str]


class _Data(msgspec.Struct):
    plain: Lines = msgspec.field(default="", name="text/plain")
    png: Lines = msgspec.field(default="", name="image/png")
    jpeg: Lines = msgspec.field(default="", name="image/jpeg")


class _Output(msgspec.Struct):
    output_type: str = ""
    text: Lines = ""
    data: _Data = msgspec.field(default_factory=_Data)
    ename: str = ""
    evalue: str = ""


class _Cell(msgspec.Struct):
    cell_type: str
    source: Lines = ""
    outputs: list[_Output] = []


class _Notebook(msgspec.Struct):
    cells: Annotated[list[_Cell], msgspec.Meta(min_length=0)]


def render(data: bytes) -> str | None:
    """Return the cells of a notebook file as text, or None when the bytes are no notebook (format 4)."""
    try:
        notebook = msgspec.json.decode(data, type=_Notebook)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    blocks = ["\n".join(_format_cell(number, cell)) for number, cell in enumerate(notebook.cells, 1)]
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _format_cell(number: int, cell: _Cell) -> Iterator[str]:
    yield f"[cell {number}: {cell.cell_type}]"
    yield _join(cell.source)
    for output in cell.outputs:
        text = _format_output(output)
        if text:
            yield f"[output of cell {number}]"
            yield text


def _format_output(output: _Output) -> str:
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    text = _join(output.text) or _join(output.data.plain)
    kinds = [kind for kind, there in (("PNG", output.data.png), ("JPEG", output.data.jpeg)) if there]
    if kinds:
        text = f"{text}\n({', '.join(kinds)} picture, not shown)".strip()
    text = text.rstrip("\n")
    return text if len(text) <= _OUTPUT else f"{text[:_OUTPUT]}\n({len(text) - _OUTPUT} more characters, not shown)"


def _join(lines: Lines) -> str:
    return lines if isinstance(lines, str) else "".join(lines)
