"""The messages that a conversation on the screen posts."""

from textual.message import Message


class Selected(Message, namespace="transcript"):
    """A text was selected."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class PictureSeen(Message, namespace="transcript"):
    """A visible picture is not drawn, perhaps because the terminal was not queried yet."""


class NearTop(Message, namespace="transcript"):
    """The oldest message is nearly visible: older ones are needed."""


class FollowChanged(Message, namespace="transcript"):
    """The view stopped or resumed following the conversation's end."""


class Toggled(Message, namespace="transcript"):
    """An item was clicked to be opened or closed."""

    def __init__(self, key: str, message_id: str) -> None:
        super().__init__()
        self.key = key
        self.message_id = message_id


class Clicked(Message, namespace="transcript"):
    """Something was clicked: `kind` is `open` (a session's id), `link` (an address) or `image` (a part's id)."""

    def __init__(self, kind: str, value: str) -> None:
        super().__init__()
        self.kind = kind
        self.value = value
