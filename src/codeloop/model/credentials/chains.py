"""Which providers take a cloud's credentials, and by which chain; each chain is imported when it is first used."""

from typing import TYPE_CHECKING

from codeloop.kit.lazy import load

if TYPE_CHECKING:
    from codeloop.model.credentials.cloud_chain import CloudChain

CHAINS: dict[str, str] = {
    "google-vertex": "model.credentials.google.chain:CHAIN",
    "google-vertex-anthropic": "model.credentials.google.chain:CHAIN",
    "amazon-bedrock": "model.credentials.aws.chain:CHAIN",
}
"""By provider: its `CloudChain`."""


def chain_of(provider_id: str) -> "CloudChain | None":
    """Return a provider's CloudChain, or None."""
    target = CHAINS.get(provider_id)
    return load(target) if target else None
