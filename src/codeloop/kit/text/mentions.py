"""Finds what a prompt mentions: files and subagents (`@name`),
and resources of MCP servers (`@server:uri`).
"""

import re

# Not compiled here but by `re` when first used, which caches them: most prompts mention nothing.
_RESOURCE = (
    r"""(?<![\w`@/.])@(?:"([^"\n:]+:[^"\n]+)"|([^\s`"',;:!?()<>\[\]{}]+:[^\s`"',;!?()<>\[\]{}]+))"""
)
_NAME = r"""[^\s`"',;:!?()<>\[\]{}]+"""
_MENTION = rf"""(?<![\w`@/.])@(?:"([^"\n]+)"|(?=({_NAME}))([^\s`"]+))"""
# What ends a sentence, or a parenthesis around a mention.
_CLOSERS = ".,;:!?)>]}'"


def list_mentions(text: str) -> list[str]:
    """Return the names mentioned as `@name` or `@"a name"`, each once,
    without the full stop of a sentence.
    """
    return [spellings[-1] for spellings in list_spellings(text)]


def list_spellings(text: str) -> list[tuple[str, ...]]:
    """Return each mention once, as the names that it may be, longest first;
    the last ends at the first punctuation.

    `@app/(auth)/[id]/page.tsx,` may be that file without the comma,
    and `@it's` the file `it's` or a mention of `it`.
    """
    mentions: dict[str, tuple[str, ...]] = {}
    for match in re.finditer(_MENTION, text):
        name, longest = match[1] or match[2].rstrip("."), match[1] or match[3]
        spellings = [longest]
        while len(longest) > len(name) and longest[-1] in _CLOSERS:
            longest = longest[:-1]
            spellings.append(longest)
        if name:
            mentions.setdefault(match[0], tuple(dict.fromkeys((*spellings, name))))
    return list(dict.fromkeys(mentions.values()))


def list_resource_mentions(text: str) -> list[str]:
    """Return the possible resources mentioned as `@server:uri` or `@"server:uri"`, each once."""
    targets = (match[1] or match[2].rstrip(".:") for match in re.finditer(_RESOURCE, text))
    return list(dict.fromkeys(targets))
