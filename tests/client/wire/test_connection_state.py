"""What a person hears of a server that does not answer."""

from codeloop.client.client import ServerLost
from codeloop.client.wire.connection_state import ConnectionState

URL = "http://127.0.0.1:4096"


def link() -> tuple[ConnectionState, list[str]]:
    """Return a link that was up, and the list of what is said of it from then on."""
    made, heard = ConnectionState(), list[str]()
    made.record_answer(URL)
    made.on_report = heard.append
    return made, heard


def test_a_silent_stream_is_said_once_until_it_is_back() -> None:
    made, heard = link()
    made.record_silence(URL)
    made.record_silence(URL)
    assert [line.split(": ")[0] for line in heard] == ["The connection is silent"]
    made.record_answer(URL)
    made.record_silence(URL)
    assert len(heard) == 3


def test_a_lost_connection_is_not_called_silent_too() -> None:
    made, heard = link()
    made.record_silence(URL)
    made.record_loss(ServerLost("lost", "nothing answers there"), URL)
    made.record_silence(URL)
    made.record_loss(ServerLost("lost", "nothing answers there"), URL)
    assert len(heard) == 2
    assert heard[1].startswith("The connection is lost: nothing answers there.")
    assert made.is_down
