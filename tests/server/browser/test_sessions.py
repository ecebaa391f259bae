"""A link signs one browser in, once; its session needs the cookie and the key,
for the host that it was made for.
"""

import time

import pytest

from codeloop.schema.bounds.server import BROWSER_LINK, BROWSER_LINKS, BROWSER_SESSION
from codeloop.server.browser.sessions import BrowserSessions

HOST = "127.0.0.1:4096"


@pytest.fixture
def sessions() -> BrowserSessions:
    return BrowserSessions("a password", 4096)


def test_a_link_counts_once(sessions: BrowserSessions) -> None:
    link = sessions.create_link()
    assert sessions.use_link(link)
    assert not sessions.use_link(link)
    assert not sessions.use_link("")


def test_a_link_ends_by_itself(sessions: BrowserSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    link, later = sessions.create_link(), time.monotonic() + BROWSER_LINK.seconds + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert not sessions.use_link(link)


def test_the_oldest_of_too_many_links_ends(sessions: BrowserSessions) -> None:
    links = [sessions.create_link() for _ in range(BROWSER_LINKS.value + 1)]
    assert [sessions.use_link(link) for link in links] == [False] + [True] * BROWSER_LINKS.value


def test_a_session_needs_both_halves_and_its_host(sessions: BrowserSessions) -> None:
    made = sessions.create_session(HOST)
    cookies = f"other=1; codeloop_4096={made.cookie}"
    assert sessions.is_valid(cookies, made.key, HOST)
    assert not sessions.is_valid(cookies, "", HOST)
    assert not sessions.is_valid("", made.key, HOST)
    assert not sessions.is_valid(cookies, made.key, "127.0.0.1:5000")
    assert not sessions.is_valid(cookies, sessions.create_session(HOST).key, HOST)


@pytest.mark.parametrize(
    "cookie", ["", "x", ".", "..", "a.9999999999.", "a.99999999999999999999.b", "a.ä.b", "a.-1.b"]
)
def test_what_is_no_session_is_refused(sessions: BrowserSessions, cookie: str) -> None:
    made = sessions.create_session(HOST)
    assert not sessions.is_valid(f"codeloop_4096={cookie}", made.key, HOST)


def test_a_session_expires(sessions: BrowserSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    made, later = sessions.create_session(HOST), time.time() + BROWSER_SESSION.seconds + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert not sessions.is_valid(f"codeloop_4096={made.cookie}", made.key, HOST)


def test_a_session_outlives_a_restart_but_not_a_change_of_the_password(
    sessions: BrowserSessions,
) -> None:
    made = sessions.create_session(HOST)
    cookies = f"codeloop_4096={made.cookie}"
    assert BrowserSessions("a password", 4096).is_valid(cookies, made.key, HOST)
    assert not BrowserSessions("another one", 4096).is_valid(cookies, made.key, HOST)
    assert not BrowserSessions(None, 4096).is_valid(cookies, made.key, HOST)
