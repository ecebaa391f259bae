"""Finds what a prompt mentions: files and subagents (`@name`), and resources of MCP servers (`@server:uri`)."""

import re

# Not compiled here but by `re` when first used, which caches them: most prompts mention nothing.
_RESOURCE = r"""(?<![\w`@/.])@(?:"([^"\n:]+:[^"\n]+)"|([^\s`"',;:!?()<>\[\]{}]+:[^\s`"',;!?()<>\[\]{}]+))"""
_MENTION = r"""(?<![\w`@/.])@(?:"([^"\n]+)"|([^\s`"',;:!?()<>\[\]{}]+))"""


def list_mentions(text: str) -> list[str]:
    """Return the names mentioned as `@name` or `@"a name"`, each once, without the full stop of a sentence."""
    targets = (match[1] or match[2].rstrip(".") for match in re.finditer(_MENTION, text))
    return list(dict.fromkeys(name for name in targets if name))


def list_resource_mentions(text: str) -> list[str]:
    """Return the possible resources mentioned as `@server:uri` or `@"server:uri"`, each once."""
    targets = (match[1] or match[2].rstrip(".:") for match in re.finditer(_RESOURCE, text))
    return list(dict.fromkeys(targets))
