"""Models of several protocols behind a test server, for the tests in this folder."""

from tests.support.models import anthropic, asking, no_proxies, openai, responses

__all__ = ["anthropic", "asking", "no_proxies", "openai", "responses"]
