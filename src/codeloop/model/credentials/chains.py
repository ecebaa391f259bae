"""The table of the providers that accept a cloud's credentials (`CloudChain`)."""

from typing import TYPE_CHECKING

from codeloop.kit.lazy import load_object

if TYPE_CHECKING:
    from codeloop.model.credentials.cloud_chain import CloudChain

CHAIN_TARGETS: dict[str, str] = {
    "google-vertex": "model.credentials.google.chain:CHAIN",
    "google-vertex-anthropic": "model.credentials.google.chain:CHAIN",
    "amazon-bedrock": "model.credentials.aws.chain:CHAIN",
}
"""By provider: the name of its `CloudChain`, whose module is imported when it is first used."""


def load_chain(provider_id: str) -> "CloudChain | None":
    """Return a provider's `CloudChain`; None for a provider that takes no cloud credentials."""
    target = CHAIN_TARGETS.get(provider_id)
    return load_object(target) if target else None
