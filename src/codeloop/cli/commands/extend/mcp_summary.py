"""Describes in lines what an MCP server offers, for the commands that connect to one."""

from codeloop.extend.mcp.cache.listing import Listing
from codeloop.kit.text.terminal_text import escape_controls, one_line

# Characters of a description or a list of names on a line.
LINE_CHARS = 100


def format_summary(name: str, listing: Listing) -> str:
    """Return a line that names the tools of a server,
    and a warning if hidden characters are in their texts.
    """
    server_note = f" ({escape_controls(listing.server)})" if listing.server else ""
    names = one_line(", ".join(tool.name for tool in listing.tools), LINE_CHARS)
    count = _format_count(len(listing.tools), "tool")
    lines = [f"{escape_controls(name)}{server_note} works: {count}{': ' if names else ''}{names}"]
    if tool_names := _find_hidden_characters(listing):
        lines.append(
            f"Beware: hidden characters in what it says of {', '.join(tool_names)}; `mcp debug` shows them."
        )
    return "\n".join(lines)


def _find_hidden_characters(listing: Listing) -> list[str]:
    """Return the tools whose names or descriptions hold characters that nobody sees."""
    # They may hold instructions for the model.
    return [
        escape_controls(tool.name)
        for tool in listing.tools
        if any(escape_controls(text) != text for text in (tool.name, tool.description))
    ]


def _format_count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
