"""What the offers of extensions show: whether one is empty, is needed each turn, or follows events.
Pure.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from codeloop.extend.host.extension import Extension
from codeloop.extend.host.offer_cache import is_empty_offer
from codeloop.extend.host.protocol import ExtensionOffer

EVENT_HOOK = "event"
# Hooks of every turn. Extensions with only other hooks are loaded when one is called.
_EACH_TURN_HOOKS = frozenset(
    (
        *(
            "chat.message",
            "chat.params",
            "chat.headers",
            "tool.definition",
            "session.start",
            "session.stop",
        ),
        *(
            "experimental.chat.messages.transform",
            "experimental.chat.system.transform",
            "experimental.text.complete",
        ),
    )
)


def offers_nothing(offers: Mapping[str, ExtensionOffer], extension: Extension) -> bool:
    """Return whether a loaded extension has neither a tool nor a hook nor a sign-in."""
    return extension.name in offers and is_empty_offer(offers[extension.name])


def is_idle_policy(
    offers: Mapping[str, ExtensionOffer], extension: Extension, all_extensions: Iterable[Extension]
) -> bool:
    """Return whether a policy extension has no hook, nor has any other file of its package."""
    if not extension.policy or extension.name not in offers:
        return False
    package = [
        each for each in all_extensions if each.policy and _are_in_one_package(each, extension)
    ]
    return not any(offers[each.name].hooks for each in (extension, *package) if each.name in offers)


def _are_in_one_package(one: Extension, other: Extension) -> bool:
    """Return whether both are files of the same package folder, not configured entries."""
    are_files = one.origin == one.path and other.origin == other.path
    return are_files and Path(one.path).parent == Path(other.path).parent


def is_needed_each_turn(offers: Mapping[str, ExtensionOffer], extension: Extension) -> bool:
    """Return whether an extension is called in each turn,
    or has a policy's hook: then it is always loaded.
    """
    hooks = offers[extension.name].hooks if extension.name in offers else ()
    return bool(extension.policy and hooks) or any(
        hook.policy or hook.name in _EACH_TURN_HOOKS for hook in hooks
    )


def follows_events(offers: Mapping[str, ExtensionOffer], extension: Extension) -> bool:
    """Return whether an extension is known to have the hook `event`."""
    return extension.name in offers and any(
        hook.name == EVENT_HOOK for hook in offers[extension.name].hooks
    )


def list_tool_names(offers: Mapping[str, ExtensionOffer], extension: Extension) -> list[str]:
    """Return the names of the tools that an extension is known to offer."""
    return [tool.name for tool in offers[extension.name].tools] if extension.name in offers else []
