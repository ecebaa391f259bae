"""Write docs/map.md, which says what each module of the program is,
in the first sentences of its docstring.
"""

import ast
import sys
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODE = ROOT / "src" / "codeloop"
PAGE = ROOT / "docs" / "map.md"
HEAD = """# Map

What each module is, in its own words. `make map` writes this page from the docstrings, so nobody edits it; what the
words mean, and how a prompt goes through the rooms, is in [Architecture](architecture.md). Paths are below
`src/codeloop/`.
"""


def read_summary(path: Path) -> str:
    """Return the first paragraph of a module's docstring, in one line; "" without one."""
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(doc.partition("\n\n")[0].split())


def list_modules() -> list[Path]:
    """Return the modules that say what they are; material in folders `data` is no code of ours."""
    modules = (path.relative_to(CODE) for path in CODE.rglob("*.py"))
    return sorted(
        (path for path in modules if "data" not in path.parts),
        key=lambda path: (path.parent.parts, path.name),
    )


def make_page() -> str:
    """Return the page: a heading for each room, a list for each of its folders."""
    lines = [HEAD]
    rooms = groupby(list_modules(), key=lambda path: path.parts[0] if len(path.parts) > 1 else "")
    for room, paths in rooms:
        lines.append(f"## {room or 'The package'}\n")
        for folder, modules in groupby(paths, key=lambda path: path.parent):
            about = (
                read_summary(CODE / folder / "__init__.py")
                if (CODE / folder / "__init__.py").exists()
                else ""
            )
            if folder.parts:
                lines.append(f"**`{folder}/`** {about}".rstrip() + "\n")
            rows = [
                (path, read_summary(CODE / path)) for path in modules if path.name != "__init__.py"
            ]
            lines.append("".join(f"- `{path}`: {summary}\n" for path, summary in rows if summary))
    return "\n".join(line for line in lines if line)


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
    sys.stdout.write(f"Wrote {PAGE.relative_to(ROOT)}\n")
