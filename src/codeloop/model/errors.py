"""Why no model can be used: errors for which a person has to change a setting, a key or a name."""

from codeloop.schema.errors import CodeloopError


class ModelUnavailable(CodeloopError):
    """No request can be sent to the model that was asked for; the message says what to do next."""


class UnknownModel(ModelUnavailable):
    """There is no such provider or model, or the model has no such variant."""


class NoModel(ModelUnavailable):
    """No model is configured and none was found."""


class NoKey(ModelUnavailable):
    """The provider needs a key, and none is set."""


class WrongOrigin(ModelUnavailable):
    """A stored key was asked for by another origin than the one it was stored for."""


class UnspokenProtocol(ModelUnavailable):
    """The model's service speaks a protocol that we do not."""
