"""Limits of browsers' sign-in."""

from codeloop.kit.limit import Limit

BROWSER_LINK = Limit("browser.link", 600_000, "ms", "a one-time link that was not opened; then it leads nowhere")
BROWSER_LINKS = Limit("browser.links", 20, "count", "one-time links at once; one more takes the place of the oldest")
BROWSER_SESSION = Limit("browser.session", 30 * 24 * 3_600_000, "ms", "a browser stays signed in, then it needs a link")
