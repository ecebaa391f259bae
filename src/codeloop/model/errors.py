"""Errors for an unusable model, to be fixed by a setting, a key or a name."""

from codeloop.schema.errors import CodeloopError


class ModelUnavailable(CodeloopError):
    """No request can be sent to the model; the message says what to do next."""


class UnknownModel(ModelUnavailable):
    """There is no such provider or model, or the model has no such variant."""


class NoModel(ModelUnavailable):
    """No model is configured and none was found."""


class NoKey(ModelUnavailable):
    """The provider needs a key, and none is set."""


class WrongOrigin(ModelUnavailable):
    """A stored key was requested for another origin than its own."""


class UnspokenProtocol(ModelUnavailable):
    """The model's protocol is not supported."""
