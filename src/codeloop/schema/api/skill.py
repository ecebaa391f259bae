"""A skill: a text for the model that it loads when a task calls for it, as clients see it."""

from codeloop.schema.wire import Wire


class Skill(Wire):
    """`location`: the absolute path of its SKILL.md; `content`: the text below the head."""

    name: str
    location: str
    content: str
    description: str | None = None
