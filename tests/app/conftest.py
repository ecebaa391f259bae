"""Tests of this folder run over both clients."""

from tests.agent.harness import both_clients

__all__ = ["both_clients"]
