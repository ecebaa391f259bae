"""Write docs/library-reference.md: what `import codeloop` offers, from the docstrings in the code."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
PAGE = ROOT / "docs" / "library-reference.md"
HEAD = """\
# Reference of the library

What `import codeloop` offers, made from the docstrings by `make reference`. The [guide](library.md) says how to begin.
`codeloop.sync` has `open` and `connect` too: what is `async` here is a plain call there, and `async for` is `for`.
"""
CHAPTERS = {
    "Open": ("open", "connect", "OpenOptions", "ConnectOptions", "SessionOptions"),
    "Work": ("AgentProject", "AgentSession", "Answer", "Tokens", "SaidMessage", "TurnLimits", "Budget"),
    "Events": (
        *("SessionEvent", "TextAdded", "ThinkingAdded", "ToolStarted", "ToolReported", "ToolEnded", "ToolUse"),
        *("StepEnded", "FilesChanged", "RetryWaiting", "Notice", "TurnDone"),
    ),
    "Answer questions": ("PermissionQuestion", "Allow", "Deny", "Action", "ModelQuestion", "Choice"),
    "Functions as tools": ("Context",),
    "Errors": ("CodeloopError", "TurnFailed", "LimitReached", "WrongResult", "SessionNotFound", "ToolRefused"),
}

Node = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign


def homes() -> dict[str, tuple[Path, str]]:
    """Return where each public name is: file, and name there."""
    stub = ast.parse((SRC / "codeloop" / "__init__.pyi").read_text(encoding="utf-8"))
    found: dict[str, tuple[Path, str]] = {}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module != "codeloop":
            path = SRC / Path(*node.module.split("."))
            file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            found |= {alias.asname or alias.name: (file, alias.name) for alias in node.names}
    return found


def find(file: Path, name: str) -> tuple[Node, str]:
    """Return the definition of a name, and the docstring below it where it is a plain value."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    for place, node in enumerate(body):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return node, ast.get_docstring(node) or ""
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return node, below(body, place)
    raise SystemExit(f"{name} is not in {file}")


def below(body: list[ast.stmt], place: int) -> str:
    """Return the string that stands below a statement."""
    after = body[place + 1] if place + 1 < len(body) else None
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
        return " ".join(after.value.value.split())
    return ""


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str:
    """Return a function as it is called, without `self`."""
    for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        each.annotation = Unquoted().visit(each.annotation) if each.annotation is not None else None
    given = ast.unparse(node.args).replace("self, ", "").removeprefix("self")
    returns = f" -> {plain(node.returns)}" if node.returns is not None else ""
    kind = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    if any(ast.unparse(each) == "asynccontextmanager" for each in node.decorator_list):
        kind, returns = "async with ", returns.replace("AsyncGenerator[", "").rstrip("]")
    return f"{kind}{name}({given}){returns}"


class Unquoted(ast.NodeTransformer):
    """Writes types without the quotes that put off their evaluation."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Leave literals as they are."""
        return node if ast.unparse(node.value) == "Literal" else cast("ast.expr", self.generic_visit(node))

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Take a quoted type for a type."""
        return ast.Name(node.value) if isinstance(node.value, str) else node


def plain(kind: ast.expr) -> str:
    """Return a type as it is read."""
    return ast.unparse(Unquoted().visit(kind))


def chapter(title: str, names: tuple[str, ...], known: dict[str, tuple[Path, str]]) -> Iterator[str]:
    """Yield the lines of a chapter."""
    yield f"\n## {title}"
    for name in names:
        node, text = find(*known[name])
        yield f"\n### {name}\n"
        match node:
            case ast.ClassDef():
                yield text
                yield from members(node)
            case ast.Assign(value=value):
                yield f"`{ast.unparse(value)}`\n"
                yield text
            case _:
                yield f"`{signature(node, name)}`\n"
                yield text


def members(node: ast.ClassDef) -> Iterator[str]:
    """Yield the fields and methods of a class."""
    fields: list[str] = []
    methods: list[str] = []
    overloads: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    base = next((ast.unparse(base) for base in node.bases if "Options" in ast.unparse(base)), "")
    initialised = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    for place, each in enumerate(node.body):
        match each:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value):
                default = f" = {ast.unparse(value)}" if value is not None else ""
                shown = f"{name}: {plain(kind)}{default}".replace(" = NOTHING", " = {}")
                fields.append(row(shown, below(node.body, place)))
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not each.name.startswith("_"):
                decorators = {ast.unparse(decorator) for decorator in each.decorator_list}
                if "overload" in decorators:
                    overloads[each.name] = each
                    continue
                text = " ".join((ast.get_docstring(each) or "").split())
                if "property" in decorators:
                    fields.append(row(f"{each.name}: {plain(each.returns) if each.returns else ''}", text))
                else:
                    methods += [f"\n`{signature(overloads.get(each.name, each), each.name)}`\n", text]
            case _:
                pass
    for function in initialised:
        for place, each in enumerate(function.body):
            if isinstance(each, ast.Assign) and (text := below(function.body, place)):
                fields.append(row(ast.unparse(each.targets[0]).removeprefix("self."), text))
    if base:
        yield f"\nAnd those of `{base.split(',')[0]}`."
    if fields:
        yield "\n| field | |\n|---|---|"
        yield from fields
    yield from methods


def row(shown: str, text: str) -> str:
    """Return a row of a table."""
    bar = "\\|"
    return f"| `{shown.replace('|', bar)}` | {text.replace('|', bar)} |"


def page() -> str:
    """Return the page."""
    known = homes()
    listed = {name for names in CHAPTERS.values() for name in names}
    if listed != known.keys():
        raise SystemExit(f"Put these into a chapter, or take them out: {sorted(listed ^ known.keys())}")
    lines = [line for title, names in CHAPTERS.items() for line in chapter(title, names, known)]
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
