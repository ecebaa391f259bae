"""Errors of the setup: no request can be sent, until the user changes a setting,
a key or a name.
"""

from codeloop.schema.errors import CodeloopError


class ModelUnavailable(CodeloopError):
    """No request can be sent to the model; the message says what to do next."""


class UnknownModel(ModelUnavailable):
    """There is no such provider or model, or the model has no such variant."""


class NoModel(ModelUnavailable):
    """No model is configured and none was found."""


class NoKey(ModelUnavailable):
    """The provider needs a key, and none is set."""


class WrongKeyOrigin(ModelUnavailable):
    """A stored key was requested for another origin than the one that it is bound to."""


class UnsupportedProtocol(ModelUnavailable):
    """The model's protocol is not supported."""
