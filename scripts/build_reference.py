"""Write docs/library-reference.md: what `import codeloop` offers,
from the docstrings in the code.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
PAGE = ROOT / "docs" / "library-reference.md"
INTRODUCTION = """\
# Reference of the library

What `import codeloop` offers, made from the docstrings by `make reference`. The [guide](library.md) says how to begin.
`codeloop.sync` has `open` and `connect` too: what is `async` here is a plain call there, and `async for` is `for`.
"""
CHAPTERS = {
    "Open": ("open", "connect", "OpenOptions", "ConnectOptions", "SessionOptions"),
    "Work": (
        "AgentProject",
        "AgentSession",
        "Answer",
        "Tokens",
        "SaidMessage",
        "TurnLimits",
        "Budget",
    ),
    "Events": (
        *(
            "SessionEvent",
            "TextAdded",
            "ThinkingAdded",
            "ToolStarted",
            "ToolReported",
            "ToolEnded",
            "ToolUse",
        ),
        *("StepEnded", "FilesChanged", "RetryWaiting", "Notice", "TurnDone"),
    ),
    "Answer questions": (
        "PermissionQuestion",
        "Allow",
        "Deny",
        "Action",
        "ModelQuestion",
        "Choice",
    ),
    "Functions as tools": ("Context",),
    "Errors": (
        "CodeloopError",
        "TurnFailed",
        "LimitReached",
        "WrongResult",
        "SessionNotFound",
        "ToolRefused",
        "ProjectClosed",
    ),
}

Node = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign


def find_definitions() -> dict[str, tuple[Path, str]]:
    """Map each public name to the file that defines it and its name there,
    as the package's stub imports them.
    """
    stub = ast.parse((SRC / "codeloop" / "__init__.pyi").read_text(encoding="utf-8"))
    found: dict[str, tuple[Path, str]] = {}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module != "codeloop":
            path = SRC / Path(*node.module.split("."))
            file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            found |= {alias.asname or alias.name: (file, alias.name) for alias in node.names}
    return found


def find_definition(file: Path, name: str) -> tuple[Node, str]:
    """Return the definition of a name, and the docstring below it where it is a plain value."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    for index, node in enumerate(body):
        if (
            isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name == name
        ):
            return node, ast.get_docstring(node) or ""
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return node, read_docstring_below(body, index)
    raise SystemExit(f"{name} is not in {file}")


def read_docstring_below(body: list[ast.stmt], index: int) -> str:
    """Return the docstring that follows a statement, on one line; "" where there is none."""
    after = body[index + 1] if index + 1 < len(body) else None
    if (
        isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
    ):
        return " ".join(after.value.value.split())
    return ""


def format_signature(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str:
    """Return a function's signature in Markdown code,
    without `self` and without quotes around types.
    """
    for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        each.annotation = (
            QuoteRemover().visit(each.annotation) if each.annotation is not None else None
        )
    given = ast.unparse(node.args).replace("self, ", "").removeprefix("self")
    returns = f" -> {format_type(node.returns)}" if node.returns is not None else ""
    kind = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    if any(ast.unparse(each) == "asynccontextmanager" for each in node.decorator_list):
        kind, returns = "async with ", returns.replace("AsyncGenerator[", "").rstrip("]")
    return f"{kind}{name}({given}){returns}"


class QuoteRemover(ast.NodeTransformer):
    """Removes the quotes of forward references in types."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Keep the strings of `Literal`, which are values."""
        return (
            node
            if ast.unparse(node.value) == "Literal"
            else cast("ast.expr", self.generic_visit(node))
        )

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Replace a quoted type by its name."""
        return ast.Name(node.value) if isinstance(node.value, str) else node


def format_type(kind: ast.expr) -> str:
    """Return the source text of a type, without quotes."""
    return ast.unparse(QuoteRemover().visit(kind))


def format_chapter(
    title: str, names: tuple[str, ...], definitions: dict[str, tuple[Path, str]]
) -> Iterator[str]:
    """Yield the Markdown lines of a chapter: a heading and an entry for each name."""
    yield f"\n## {title}"
    for name in names:
        node, text = find_definition(*definitions[name])
        yield f"\n### {name}\n"
        match node:
            case ast.ClassDef():
                yield text
                yield from format_members(node)
            case ast.Assign(value=value):
                yield f"`{ast.unparse(value)}`\n"
                yield text
            case _:
                yield f"`{format_signature(node, name)}`\n"
                yield text


def format_members(node: ast.ClassDef) -> Iterator[str]:
    """Yield the Markdown lines of a class: a table of its fields, then its methods."""
    fields: list[str] = []
    methods: list[str] = []
    overloads: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    # Options have a base of ours, whose fields are told in its own entry.
    base = next((ast.unparse(base) for base in node.bases if "Options" in ast.unparse(base)), "")
    constructors = [
        each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"
    ]
    for index, each in enumerate(node.body):
        match each:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value):
                default = f" = {ast.unparse(value)}" if value is not None else ""
                shown = f"{name}: {format_type(kind)}{default}".replace(" = EMPTY_MAPPING", " = {}")
                fields.append(format_row(shown, read_docstring_below(node.body, index)))
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not each.name.startswith("_"):
                decorators = {ast.unparse(decorator) for decorator in each.decorator_list}
                if "overload" in decorators:
                    overloads[each.name] = each
                    continue
                text = " ".join((ast.get_docstring(each) or "").split())
                if "property" in decorators:
                    fields.append(
                        format_row(
                            f"{each.name}: {format_type(each.returns) if each.returns else ''}",
                            text,
                        )
                    )
                else:
                    methods += [
                        f"\n`{format_signature(overloads.get(each.name, each), each.name)}`\n",
                        text,
                    ]
            case _:
                pass
    # Attributes that a constructor sets, with a docstring below.
    for function in constructors:
        for index, each in enumerate(function.body):
            if isinstance(each, ast.Assign) and (
                text := read_docstring_below(function.body, index)
            ):
                fields.append(format_row(ast.unparse(each.targets[0]).removeprefix("self."), text))
    if base:
        yield f"\nAnd those of `{base.split(',')[0]}`."
    if fields:
        yield "\n| field | |\n|---|---|"
        yield from fields
    yield from methods


def format_row(shown: str, text: str) -> str:
    """Return a row of a Markdown table: code, and its description."""
    bar = "\\|"
    return f"| `{shown.replace('|', bar)}` | {text.replace('|', bar)} |"


def format_page() -> str:
    """Return the whole page; SystemExit when the chapters do not list exactly the public names."""
    definitions = find_definitions()
    listed = {name for names in CHAPTERS.values() for name in names}
    if listed != definitions.keys():
        raise SystemExit(
            f"Put these into a chapter, or take them out: {sorted(listed ^ definitions.keys())}"
        )
    lines = [
        line
        for title, names in CHAPTERS.items()
        for line in format_chapter(title, names, definitions)
    ]
    return INTRODUCTION + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(format_page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
