"""Finds what a prompt mentions: files and subagents (`@name`), and resources of MCP servers (`@server:uri`)."""

import re
from typing import NamedTuple

# Not compiled here but by `re` when first used, which caches them: most prompts mention nothing.
_RESOURCE = r"""(?<![\w`@/.])@(?:"([^"\n:]+:[^"\n]+)"|([^\s`"',;:!?()<>\[\]{}]+:[^\s`"',;!?()<>\[\]{}]+))"""
_MENTION = r"""(?<![\w`@/.])@(?:"([^"\n]+)"|([^\s`"',;:!?()<>\[\]{}]+))"""


class MentionPlace(NamedTuple):
    """The literal text of a mention, and the character offsets of its start and end."""

    value: str
    start: int
    end: int


def list_mentions(text: str) -> list[str]:
    """Return the names mentioned as `@name` or `@"a name"`, each once, without the full stop of a sentence."""
    targets = (match[1] or match[2].rstrip(".") for match in re.finditer(_MENTION, text))
    return list(dict.fromkeys(name for name in targets if name))


def list_resource_mentions(text: str) -> list[str]:
    """Return the possible resources mentioned as `@server:uri` or `@"server:uri"`, each once."""
    targets = (match[1] or match[2].rstrip(".:") for match in re.finditer(_RESOURCE, text))
    return list(dict.fromkeys(targets))


def locate_mention(name: str, text: str) -> MentionPlace:
    """Return the place of the mention of a name in a text; for a name that is mentioned twice, the first."""
    mention = next((each for each in (f'@"{name}"', f"@{name}") if each in text), f"@{name}")
    start = max(text.find(mention), 0)
    return MentionPlace(value=mention, start=start, end=start + len(mention))
