"""Calls of tools that are not known here, those of MCP servers among them: name, arguments, output."""

import msgspec

from codeloop.kit.terminal_text import inert, laid_out, one_line
from codeloop.schema.wire import JSON
from codeloop.tui.render.calls.call import CallBody, ToolCall


def generic(call: ToolCall) -> CallBody:
    """Return the arguments on one line, and the output."""
    rows = call.folded(call.plain(call.output.strip("\n"))) if call.output.strip() else []
    return CallBody(subject=arguments(call.input), notes=[*_progress(call), *call.took()], rows=rows)


def structured_output(call: ToolCall) -> CallBody:
    """Return an answer as data: the JSON."""
    return CallBody(notes=call.took(), rows=call.folded(call.plain(laid_out(call.input)), 30) if call.input else [])


def _progress(call: ToolCall) -> list[str]:
    """Return how far the server says that it is, while it works."""
    said = call.title if call.status == "running" and "progress" in call.metadata else ""
    return [one_line(said, 60)] if said else []


def arguments(given: JSON) -> str:
    """Return a call's arguments as people read them: `name: value, name: value`."""
    return ", ".join(f"{inert(name)}: {_value(value)}" for name, value in given.items())


def _value(value: object) -> str:
    if isinstance(value, str):
        return inert(value[:500])
    return inert(msgspec.json.encode(value)[:500].decode("utf-8", "replace"))
