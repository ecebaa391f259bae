"""`ServerSettings`: what a server is told when it asks for its configuration,
for each root of the project.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from codeloop.kit.jsonc import is_object, merge_objects
from codeloop.lsp.client.file_uri import parse_file_uri
from codeloop.schema.wire import JSON


class ServerSettings(Struct, frozen=True):
    """The settings of a server. `find_settings`: returns those for a root of the project.

    `answers`: what the user has configured as its `initialization`. Servers that ask instead are
    given it, too: the part that has the name of the section, or all of it, as OpenCode does.
    """

    find_settings: Callable[[Path], JSON]
    answers: JSON

    def answer(self, item: Any, default_root: Path) -> Any:
        """Return the section that a server asks for (a `ConfigurationItem`);
        all settings if it names no section.
        """
        fields: JSON = item if is_object(item) else {}
        root = parse_file_uri(fields.get("scopeUri")) or default_root
        names = str(fields["section"]).split(".") if fields.get("section") else []
        settings, answers = _find(self.find_settings(root), names), _find(self.answers, names)
        if answers is None and self.answers:
            answers = self.answers
        if is_object(settings) and is_object(answers):
            return merge_objects(settings, answers)
        return settings if answers is None else answers

    def list_all(self, root: Path) -> JSON:
        """Return all settings for a root, for servers that are sent them."""
        return merge_objects(self.find_settings(root), self.answers)


def _find(settings: JSON, names: list[str]) -> Any:
    value: Any = settings
    for name in names:
        value = value.get(name) if is_object(value) else None
    return value
