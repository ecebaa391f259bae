"""Finds the functions, classes and sections of a text by its layout,
in any language that is indented. Pure.

A line that defines something begins a block, which ends before the next line that is indented no
deeper, unless that line belongs to the block as a closing bracket does. Python is read by its own
parser where that understands it. `list_exact_blocks` corrects the ends by the
grammar of the language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from codeloop.kit.text.patterns import compile_once
from codeloop.schema.wire import replace
from codeloop.workspace.syntax_tree import parse_python, parse_tree

if TYPE_CHECKING:
    from tree_sitter import Node

# A longer line is read in part: minified code has lines of a megabyte.
_MAX_LINE_CHARS = 400
# A longer Python file is not parsed, which would take more than a tenth of a second.
_MAX_PYTHON_CHARS = 2_000_000
# The start of a line that continues a block although it is indented no deeper than its first line:
# `} else {`, `end`, `#endif`, a label such as `done:`.
_CONTINUATION = (
    r"[)\]}>]|(?:end|else|elif|elsif|except|finally|catch|rescue|ensure|case|default|where)\b|[{(]\s*$"
    r"|#\s*(?:if|ifdef|ifndef|else|elif|endif|define|undef|include|pragma)\b|\w+:$"
)
# The end of a script's line whose parameters, or table of tests, stand on the lines below it.
_OPEN_LINE_END = r"(?:\(\{|\(\[|\(|\[|`)$"
# The line after those parameters, where a body follows.
_PARAMETERS_END = r"[)\]}`].*(?:\{|=>|=>\s*\()$"
# The most lines of parameters that are skipped.
_MAX_PARAMETER_LINES = 40
# The start of the last line of a block that is closed.
_BLOCK_END = r"[}\])]|end\b"
# The end of a block of one line.
_ONE_LINE_BLOCK_END = r"(?:[}\]);]|\bend),?$"

# The owner of a method as Go's documentation writes it: `(*Rule).Match`.
_GO_OWNER = r"^\(\*?(\w+)\)\s*\.\s*"
# Parts of node types whose text defines nothing, such as strings.
_TEXT_NODE_TYPES = ("string", "comment", "heredoc", "template")
# Suffixes of node types that hold definitions, and may begin with the first of them.
_CONTAINER_SUFFIXES = ("_list", "statements", "body", "body_statement")
# What C and C++ call a line such as `struct point *corner;`.
_VARIABLE_NODE_TYPES = {"declaration", "field_declaration"}


class CodeBlock(Struct, frozen=True):
    """A definition or section: its full name (`Rule.compile`), its first and last line from 1,
    its depth of nesting.
    """

    name: str
    first_line: int
    last_line: int
    depth: int


def list_blocks(text: str, suffix: str) -> list[CodeBlock]:
    """Return the blocks of a text in its order.
    `suffix`: the end of its file's name, such as `.py`.
    """
    kind = suffix.removeprefix(".").lower()
    if kind in {"md", "markdown"}:
        return list(_list_sections(split_lines(text)))
    if (
        kind in {"py", "pyi"}
        and len(text) <= _MAX_PYTHON_CHARS
        and (parsed := _list_python_blocks(text)) is not None
    ):
        return parsed
    # Imported late, here and below: few sessions look for definitions in such files.
    from codeloop.workspace.search.definition_patterns import DEFINITION_PATTERNS, SCRIPT_SUFFIXES

    patterns = [compile_once(each) for each in DEFINITION_PATTERNS.get(kind, ())]
    return list(_list_by_layout(split_lines(text), patterns, is_script=kind in SCRIPT_SUFFIXES))


def list_exact_blocks(text: str, suffix: str) -> list[CodeBlock]:
    """Return the blocks of a text as `list_blocks`, where the grammar is known with exact
    ends and none in strings.
    """
    blocks = list_blocks(text, suffix)
    root = parse_tree(text, suffix) if blocks else None
    if root is None or root.has_error:
        return blocks
    lines = split_lines(text)
    return [exact for each in blocks if (exact := _correct_block(each, root, lines)) is not None]


def split_lines(text: str) -> list[str]:
    """Return the lines of a text, without their ends,
    as they are numbered by `read`: a form feed ends none.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def has_blocks(suffix: str) -> bool:
    """Return whether definitions or sections are known in files whose names end so (`.py`)."""
    from codeloop.workspace.search.definition_patterns import DEFINITION_PATTERNS

    kind = suffix.removeprefix(".").lower()
    return kind in DEFINITION_PATTERNS or kind in {"md", "markdown"}


def match_blocks(blocks: Sequence[CodeBlock], pattern: str) -> list[CodeBlock]:
    """Return the blocks whose whole name, or its end after a dot,
    matches a pattern such as `*` or `Rule.*`.
    """
    return [
        each
        for each in blocks
        if fnmatchcase(each.name, pattern) or fnmatchcase(each.name, f"*.{pattern}")
    ]


def find_blocks(blocks: Sequence[CodeBlock], name: str) -> list[CodeBlock]:
    """Return the blocks of a name: `compile`, `Rule.compile`, also with `::` or `#` for the dot.

    Blocks with exactly this name are preferred: `#hidden` is a private method,
    and may be a test's title.
    """
    # `async def run(self)` names `run`, and Go's `(*Rule).Match` names `Rule.Match`.
    name_only = re.sub(
        r"^(?:(?:async|def|class|function|func|fn|struct|type|interface)\s+)+|\(.*",
        "",
        re.sub(_GO_OWNER, r"\1.", name.strip()),
    )
    target = re.sub(r"::|#|->", ".", name_only).removeprefix(".")
    for wanted in (name.strip(), target):
        if wanted and (
            matches := [each for each in blocks if f".{each.name}".endswith(f".{wanted}")]
        ):
            return matches
    return (
        [each for each in blocks if f".{each.name}".replace(".#", ".").endswith(f".{target}")]
        if target
        else []
    )


def format_outline(blocks: Sequence[CodeBlock], max_rows: int) -> list[str]:
    """Format a row for each block, `Rule.compile 606-697`;
    beyond `max_rows`, the smallest nested ones are left out.
    """
    largest = sorted(blocks, key=lambda each: (each.depth > 0, each.first_line - each.last_line))[
        :max_rows
    ]
    rows = [
        f"{each.name} {each.first_line}-{each.last_line}"
        for each in sorted(largest, key=lambda each: each.first_line)
    ]
    left_out = len(blocks) - len(rows)
    return [*rows, *([f"({left_out} more)"] if left_out else [])]


def find_enclosing_block(
    blocks: Sequence[CodeBlock], line: int, max_lines: int
) -> CodeBlock | None:
    """Return the innermost block of at most `max_lines` lines that holds a line;
    None: there is none.
    """
    for block in reversed(blocks):
        if block.first_line <= line <= block.last_line < block.first_line + max_lines:
            return block
    return None


def _list_by_layout(
    lines: Sequence[str], patterns: Sequence[re.Pattern[str]], *, is_script: bool
) -> Iterator[CodeBlock]:
    """Yield a block for each line that matches a pattern.
    `is_script`: its parameters may stand on the lines below.
    """
    if not patterns:
        return
    open_blocks: list[_OpenBlock] = []
    for index, line in enumerate(lines):
        match = _match_any(patterns, line)
        if match is None and is_script:
            match = _match_any(patterns, _join_parameters(lines, index))
        if match is None:
            continue
        indent = _measure_indent(line)
        while open_blocks and (open_blocks[-1].indent >= indent or index > open_blocks[-1].last):
            open_blocks.pop()
        owner = match.groupdict().get("owner")
        name = _read_name(match)
        full_name = ".".join(
            [*(block.name for block in open_blocks), *([owner] if owner else []), name]
        )
        last = _find_end(lines, index, indent)
        yield CodeBlock(full_name, first_line=index + 1, last_line=last + 1, depth=len(open_blocks))
        open_blocks.append(
            _OpenBlock(indent, name, last if _is_closed(lines, index, last, indent) else len(lines))
        )


class _OpenBlock(NamedTuple):
    """A block that may hold the following ones. `last`: the index of the last
    line that may belong to it.
    """

    indent: int
    name: str
    last: int


def _join_parameters(lines: Sequence[str], index: int) -> str:
    """Return a line whose parameters stand on lines of their own without them: `settle(`
    and `) {` are `settle() {`.

    "" for any other line.
    """
    head = lines[index].rstrip()
    if len(head) > _MAX_LINE_CHARS or not re.search(_OPEN_LINE_END, head):
        return ""
    indent = _measure_indent(head)
    for line in lines[index + 1 : index + 1 + _MAX_PARAMETER_LINES]:
        if line.strip() and _measure_indent(line) <= indent:
            closing = line.strip()
            is_end = (
                _measure_indent(line) == indent
                and len(closing) <= _MAX_LINE_CHARS
                and re.match(_PARAMETERS_END, closing)
            )
            return head + closing if is_end else ""
    return ""


def _read_name(match: re.Match[str]) -> str:
    """Return the name of a definition: `X.prototype.run` is `X.run`,
    what is set on `exports` or `this` is its own.
    """
    name, quote = match["name"], match.groupdict().get("quote")
    if quote:
        return name.replace(f"\\{quote}", quote)
    name = re.sub(r"^(?:(?:module\.)?exports|module|this)\.(?=.)", "", name.strip("'\""))
    return name.replace("::", ".").replace(".prototype.", ".")


def _is_closed(lines: Sequence[str], first: int, last: int, indent: int) -> bool:
    """Return whether a block ends with a bracket or `end`;
    else text of a string at the margin may have cut it.
    """
    line = lines[last].strip()[-_MAX_LINE_CHARS:]
    if last == first:
        return re.search(_ONE_LINE_BLOCK_END, line) is not None
    return re.match(_BLOCK_END, line) is not None and _measure_indent(lines[last]) == indent


def _match_any(patterns: Sequence[re.Pattern[str]], line: str) -> re.Match[str] | None:
    line = line[:_MAX_LINE_CHARS].rstrip()
    return next((match for each in patterns if (match := each.match(line))), None)


def _measure_indent(line: str) -> int:
    expanded = line[:_MAX_LINE_CHARS].expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def _find_end(lines: Sequence[str], start: int, indent: int) -> int:
    """Return the last line of a block that begins at `start`, both from 0."""
    last = start
    for index in range(start + 1, len(lines)):
        line = lines[index]
        if not line.strip():
            continue
        if _measure_indent(line) <= indent and (
            _measure_indent(line) < indent
            or not re.match(_CONTINUATION, line.lstrip()[:_MAX_LINE_CHARS])
        ):
            break
        last = index
    return last


def _list_sections(lines: Sequence[str]) -> Iterator[CodeBlock]:
    """Yield the sections of a Markdown text. A section ends before the next heading of
    its level or a higher one.
    """
    headings: list[tuple[int, int, str]] = []
    is_code = False
    for index, line in enumerate(lines):
        is_code ^= line.lstrip().startswith(("```", "~~~"))
        if not is_code and (heading := re.match(r"(#{1,6})\s+(.{1,80})", line)):
            headings.append((index, len(heading[1]), heading[2].strip(" #")))
    for number, (start, level, name) in enumerate(headings):
        ends = (index for index, other_level, _ in headings[number + 1 :] if other_level <= level)
        yield CodeBlock(
            name, first_line=start + 1, last_line=next(ends, len(lines)), depth=level - 1
        )


def _list_python_blocks(text: str) -> list[CodeBlock] | None:
    """Return the blocks of a Python text; None where this Python's parser does not take it."""
    import ast

    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    code_blocks: list[CodeBlock] = []
    waiting: list[tuple[ast.stmt, str, int]] = [(each, "", 0) for each in reversed(tree.body)]
    while waiting:
        node, prefix, depth = waiting.pop()
        inner: list[ast.stmt] = [
            each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)
        ]
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = min((each.lineno for each in node.decorator_list), default=node.lineno)
            code_blocks.append(
                CodeBlock(prefix + node.name, first, node.end_lineno or node.lineno, depth)
            )
            prefix, depth = f"{prefix}{node.name}.", depth + 1
        waiting += [(each, prefix, depth) for each in reversed(inner)]
    return code_blocks


def _correct_block(block: CodeBlock, root: Node, lines: Sequence[str]) -> CodeBlock | None:
    """Return a block with its exact last line; None: it is not a block, but a text or the
    declaration of a variable.
    """
    row, line = block.first_line - 1, lines[block.first_line - 1]
    indent = line[: len(line) - len(line.lstrip())]
    start = (row, len(indent.encode(errors="replace")))
    leaf = root.descendant_for_point_range(start, start)
    if leaf is None or any(each in leaf.type for each in _TEXT_NODE_TYPES):
        return None
    # The definition is the outermost node that begins on the line,
    # containers of definitions left out.
    node = root
    while node != leaf and (
        node.start_point.row != row or node.type.endswith(_CONTAINER_SUFFIXES) or node == root
    ):
        node = node.child_with_descendant(leaf) or leaf
    return (
        None
        if node.type in _VARIABLE_NODE_TYPES
        else replace(block, last_line=node.end_point.row + 1)
    )
