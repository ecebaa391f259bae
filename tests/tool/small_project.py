"""A small project that the tools are tried on, and how a call is made in it as a model makes it."""

import json
from pathlib import Path
from typing import Any

from codeloop.app.toolbox import make_toolbox
from codeloop.tool.tool import ToolFailure, format_for_model
from codeloop.tool.toolbox import InvalidToolCall, Toolbox
from codeloop.tool.truncate import truncate_output
from tests.tool.context import TestContext, make_context

BOX = make_toolbox()
FILES = {
    "src/app.py": "".join(f"def f{n}():\n    return {n}\n\n\n" for n in range(1, 31)),
    "src/config.py": 'NAME = "app"\nDEBUG = False\n',
    "src/helpers/text.py": "def shout(text):\n    return text.upper()\n",
    "README.md": "# App\n\nA small app.\n",
    "tests/test_app.py": "from src.app import f1\n",
}


def small_project(tmp_path: Path) -> TestContext:
    """Return a context in the project, in a folder of its own."""
    ctx = make_context(tmp_path)
    for name, text in FILES.items():
        file = ctx.workspace.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return ctx


async def answer(
    ctx: TestContext, tool: str, given: dict[str, Any] | str, box: Toolbox = BOX
) -> tuple[str, bool]:
    """Return what the model reads of a call and whether it was carried out."""
    prepared = box.prepare(tool, given if isinstance(given, str) else json.dumps(given))
    if isinstance(prepared, InvalidToolCall):
        return str(prepared), False
    try:
        result = await prepared.run(ctx)
    except ToolFailure as error:
        return format_for_model(error), False
    return truncate_output(result, ctx.workspace.scratch, prepared.tool.traits.keep).output, True
