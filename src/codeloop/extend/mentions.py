"""Finds the mentions of files and resources in prompts: `@name`, `@server:uri`. Pure."""

import re

from codeloop.schema.part import FilePartSourceText, FileSource

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


def locate_mention(name: str, text: str) -> FilePartSourceText:
    """Return the position of the mention of a name in a text, with its literal text."""
    # A name that stands in the text twice is located at its first occurrence.
    mention = next((each for each in (f'@"{name}"', f"@{name}") if each in text), f"@{name}")
    start = max(text.find(mention), 0)
    return FilePartSourceText(value=mention, start=start, end=start + len(mention))


def make_file_source(name: str, text: str) -> FileSource:
    """Return the source of a mentioned file: its position in the text. Attached files have no source."""
    return FileSource(path=name, text=locate_mention(name, text))
