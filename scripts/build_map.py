"""Write docs/map.md, which says what each module of the program is,
in the first sentences of its docstring.
"""

import ast
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODE = ROOT / "src" / "codeloop"
AUTOMATION = ROOT / "automation" / "src" / "codeloop_automation"
PAGE = ROOT / "docs" / "map.md"
HEAD = """# Map

What each module is, in its own words. `make map` writes this page from the docstrings, so nobody edits it; what the
words mean, and how a prompt goes through the rooms, is in [Architecture](architecture.md). Paths are below
`src/codeloop/`; at the end, those of the other distribution are below `automation/src/`.
"""


def read_summary(path: Path) -> str:
    """Return the first paragraph of a module's docstring, in one line; "" without one."""
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(doc.partition("\n\n")[0].split())


def list_modules(package: Path, base: Path) -> list[Path]:
    """Return the modules of a package that say what they are, relative to `base`; material in
    folders `data` is no code of ours.
    """
    modules = (path.relative_to(base) for path in package.rglob("*.py"))
    return sorted(
        (path for path in modules if "data" not in path.parts),
        key=lambda path: (path.parent.parts, path.name),
    )


def make_page() -> str:
    """Return the page: the rooms of the program, then the other distribution."""
    lines = [HEAD, *list_rooms(CODE, CODE), *list_rooms(AUTOMATION, AUTOMATION.parent)]
    return "\n".join(line for line in lines if line)


def list_rooms(package: Path, base: Path) -> Iterator[str]:
    """Yield the lines on a package: a heading for each room, a list for each of its folders."""
    modules = list_modules(package, base)
    rooms = groupby(modules, key=lambda path: path.parts[0] if len(path.parts) > 1 else "")
    for room, paths in rooms:
        yield f"## {room or 'The package'}\n"
        for folder, files in groupby(paths, key=lambda path: path.parent):
            about = (
                read_summary(base / folder / "__init__.py")
                if (base / folder / "__init__.py").exists()
                else ""
            )
            if folder.parts:
                yield f"**`{folder}/`** {about}".rstrip() + "\n"
            rows = [
                (path, read_summary(base / path)) for path in files if path.name != "__init__.py"
            ]
            yield "".join(f"- `{path}`: {summary}\n" for path, summary in rows if summary)


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
    sys.stdout.write(f"Wrote {PAGE.relative_to(ROOT)}\n")
