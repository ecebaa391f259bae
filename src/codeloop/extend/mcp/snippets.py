"""Reads MCP servers from pasted snippets, as READMEs have them,
and finds placeholders that are still in them.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codeloop.config.forms.server_entries import FoundServer, convert_entry, name_entries
from codeloop.kit.jsonc import parse_jsonc
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.errors import UsageProblem
from codeloop.schema.limits import CONFIG_DEPTH
from codeloop.schema.wire import JSON

_SNIPPET_SOURCE = Path("-")
# The keys under which programs have their tables of servers.
_SECTION_KEYS = ("mcpServers", "servers", "mcp", "mcp_servers", "context_servers", "extensions")
# Forms in which READMEs write a secret to be filled in: `<token>`, `your-api-key`, `token_here`,
# `xxx`, `...`.
_PLACEHOLDER = r"(?i)<[^<>]+>|\[?your[-_ ].*|.*[-_]here|x{3,}|\.{3}"


def looks_like_json(text: str) -> bool:
    """Return whether a text looks like JSON, with or without the outer braces."""
    return text.lstrip().startswith("{") or re.match(r'\s*"[^"]+"\s*:\s*\{', text) is not None


def parse_snippet(text: str, name: str = "") -> list[FoundServer]:
    """Return the servers of a snippet: a whole file, its table of servers, or one entry.

    `name`: names a single server; of several, only the one of this name is returned.
    Raises UsageProblem.
    """
    # Snippets are often copied from the middle of a file: without the outer braces,
    # or with a comma at the end.
    text = text.strip().rstrip(",")
    text = text if text.startswith("{") else f"{{{text}}}"
    try:
        value: Any = parse_jsonc(text, depth=CONFIG_DEPTH.value).value
    except ValueError as error:
        raise UsageProblem(
            f"That is not JSON: {error}. Paste the whole snippet, between single quotes."
        ) from error
    found_servers = [
        convert_entry(each, _SNIPPET_SOURCE, entry) for each, entry in _list_entries(value, name)
    ]
    if not found_servers:
        raise UsageProblem(
            'There is no server in it. It looks like {"mcpServers": {"NAME": {"command": ..., ...}}}.'
        )
    if not name or len(found_servers) == 1:
        return found_servers
    named_servers = [each for each in found_servers if each.name == name]
    if not named_servers:
        names = escape_controls(", ".join(each.name for each in found_servers))
        raise UsageProblem(
            f"None of its servers is named {name}: {names}. Give one of these names, or none for all."
        )
    return named_servers


def _list_entries(value: JSON, name: str) -> Iterator[tuple[str, JSON]]:
    """Yield the name and the entry of each server inside any surrounding tables.
    `name`: for a single entry.
    """
    if isinstance(value.get("command"), str | list) or isinstance(value.get("url"), str):
        if not name:
            raise UsageProblem(
                "That entry has no name. Say one first: codeloop mcp add NAME '{...}'"
            )
        yield name, value
        return
    tables = {
        key: name_entries(inner) for key, inner in value.items() if isinstance(inner, dict | list)
    }
    for key, inner in tables.items():
        # Settings of editors have it as `amp.mcpServers`.
        if key.rpartition(".")[2] in _SECTION_KEYS:
            yield from _list_entries(inner, name)
        else:
            yield (name if name and len(tables) == 1 else key), inner


def reject_placeholders(name: str, entry: JSON) -> None:
    """Raise UsageProblem where a value is still a README's placeholder for a secret."""
    for kind, mark in (("environment", "="), ("headers", ": ")):
        values: dict[str, str] = entry.get(kind, {})
        for key, value in values.items():
            token = str(value).removeprefix("Bearer ").strip()
            if re.fullmatch(_PLACEHOLDER, token):
                reference = (
                    re.sub(r"[^A-Za-z0-9]+", "_", token).strip("_").upper()
                    if kind == "headers"
                    else key
                )
                raise UsageProblem(
                    f"{key} of {name} still has a placeholder: {key}{mark}{value}. Put the value in, or "
                    f"{{env:{reference or 'TOKEN'}}} to take it from your environment."
                )
