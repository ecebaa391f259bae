"""What the user's own configuration says about providers and other services,
where a project's adds to it.
"""

from msgspec import Struct

from codeloop.schema.config import ProviderConfig
from codeloop.schema.wire import JSON


class OwnProviders(Struct, frozen=True):
    """The providers as the user's own layers configure them, without those of a project.

    `keys`: of the settings in effect, those that the user set, and those of the project that hold a
    variable or a file of the user, each by its path below `provider`: `("openai", "options",
    "apiKey")`.
    """

    configs: dict[str, ProviderConfig]
    keys: frozenset[tuple[str | int, ...]]

    def holds(self, *keys: str) -> bool:
        """Return whether a setting in effect, or a part of it, is the user's."""
        return any(each[: len(keys)] == keys for each in self.keys)


class OwnEntry(Struct, frozen=True):
    """The user's part of an entry whose address a project names and in which a secret
    of the user is in effect.

    The entry is `search`, or one of `mcp`. `values`: as the user's own layers have it,
    empty if they have none.
    `secret`: the setting with the secret (`headers`). `is_borrowed`: the project has it from a
    variable or a file of the user.
    """

    values: JSON
    secret: str
    is_borrowed: bool = False
