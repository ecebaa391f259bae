"""Writes the typed client from the operation table: a module a resource, a function an operation.

python scripts/generate_client.py [--into FOLDER]
"""

import argparse
import builtins
import inspect
import keyword
import re
import subprocess
import sys
import textwrap
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec

from codeloop.schema import operation
from codeloop.schema.live import Status
from codeloop.schema.operation import OPERATIONS, NoArguments, Operation
from codeloop.schema.part import Part
from codeloop.schema.wire import JSON, Wire

FOLDER = Path(__file__).resolve().parents[1] / "src" / "codeloop" / "client" / "api"
NAMED = ((Part, "codeloop.schema.part", "Part"), (Status, "codeloop.schema.live", "Status"))
"""Types that are no classes, and where they are."""
CONSTANTS = {row.id: name for name, row in vars(operation).items() if isinstance(row, Operation)}
USES = Counter(row.takes for row in OPERATIONS)
RUFF = str(Path(sys.executable).parent / "ruff")
HEAD = '"""{}\n\nWritten by scripts/generate_client.py; not to be edited.\n"""\n'


def python_name(word: str) -> str:
    """Give `deleteMessage` as `delete_message`; a name that Python has taken ends with a line."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])|\.", "_", word).lower()
    return f"{name}_" if keyword.iskeyword(name) or hasattr(builtins, name) else name


@dataclass
class Module:
    """The functions of one resource, and what they import."""

    imports: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    functions: list[str] = field(default_factory=list[str])

    def uses(self, module: str, name: str) -> str:
        """Import a name, and give it."""
        self.imports.setdefault(module, set()).add(name)
        return name

    def type_of(self, kind: Any) -> str:
        """Give the source of a type."""
        for alias, module, name in NAMED:
            if kind == alias:
                return self.uses(module, name)
        if kind == JSON:
            return self.uses("codeloop.schema.wire", "JSON")
        if kind is None:
            return "None"
        outer = get_origin(kind)
        if outer is not None:
            return f"{outer.__name__}[{', '.join(map(self.type_of, get_args(kind)))}]"
        return kind.__name__ if kind.__module__ == "builtins" else self.uses(kind.__module__, kind.__name__)

    def add(self, row: Operation) -> None:
        """Write the function of an operation."""
        name = python_name(row.id.partition(".")[2])
        head = f'    """{row.method} {row.path}.'
        if row.takes is not NoArguments and USES[row.takes] == 1:
            said = textwrap.indent(inspect.cleandoc(row.takes.__doc__ or ""), "    ")
            head += f"\n\n{said}\n    "
        client = self.uses("codeloop.client.client", "Client")
        constant = self.uses("codeloop.schema.operation", CONSTANTS[row.id])
        taken, passed = self._arguments(row.takes)
        gives = self.type_of(row.gives)
        call = f"await client.call({constant}{passed})"
        body = f"    {call}" if row.gives is None else f"    return {call}"
        self.functions.append(f'async def {name}(client: {client}{taken}) -> {gives}:\n{head}"""\n{body}\n')

    def _arguments(self, takes: type[Wire]) -> tuple[str, str]:
        """Give what stands after the client in the signature and after the operation in the call."""
        if takes is NoArguments:
            return "", ""
        name = self.type_of(takes)
        asdict = self.uses("msgspec.structs", "asdict")
        if any(each.required for each in msgspec.structs.fields(takes)):
            return f", args: {name}", f", **{asdict}(args)"
        return f", args: {name} | None = None", f", **({asdict}(args) if args else {{}})"

    def source(self, resource: str) -> str:
        """Give the whole file."""
        lines = [HEAD.format(f"The operations of `{resource}`.")]
        for ours in (False, True):
            lines += [
                f"from {module} import {', '.join(sorted(names))}"
                for module, names in sorted(self.imports.items())
                if module.startswith("codeloop") == ours
            ]
        return "\n".join(lines) + "\n\n\n" + "\n\n".join(self.functions)


def modules() -> dict[str, str]:
    """Give the name and the text of every file."""
    made: dict[str, Module] = {}
    for row in OPERATIONS:
        made.setdefault(row.id.partition(".")[0], Module()).add(row)
    files = {f"{python_name(resource)}.py": module.source(resource) for resource, module in made.items()}
    return files | {"__init__.py": HEAD.format("The typed client: a module a resource, a function an operation.")}


def write(folder: Path) -> None:
    """Write all files into a folder, formatted; what else is Python there is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    files = modules()
    for old in folder.glob("*.py"):
        if old.name not in files:
            old.unlink()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    # The settings of this project's formatter hold wherever the files lie.
    settings = ["--config", str(FOLDER.parents[3] / "pyproject.toml"), "--quiet"]
    subprocess.run([RUFF, "check", "--select", "I", "--fix", *settings, str(folder)], check=True)
    subprocess.run([RUFF, "format", *settings, str(folder)], check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=FOLDER, help="the folder that is written")
    write(parser.parse_args().into)
