"""Writes what models are told of the built-in tools' parameters: the schemas of their structs.

python scripts/build_tools.py
"""

from typing import cast

import msgspec

from codeloop.app.toolbox import BUILTIN_PARAMETERS_FILE, BUILTIN_TOOLS, BuiltinToolSchema
from codeloop.kit.lazy import load_object
from codeloop.tool.tool import Tool


def encode_tool_schemas() -> bytes:
    """Return the file's content: a line for each tool."""
    tools = [cast("Tool", load_object(target)) for target in BUILTIN_TOOLS.values()]
    rows = {tool.name: BuiltinToolSchema(tool.permission, tool.parameters) for tool in tools}
    lines = [
        msgspec.json.encode(name) + b": " + msgspec.json.encode(row) for name, row in rows.items()
    ]
    return b"{\n" + b",\n".join(lines) + b"\n}\n"


if __name__ == "__main__":
    BUILTIN_PARAMETERS_FILE.write_bytes(encode_tool_schemas())
