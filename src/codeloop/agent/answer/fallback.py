"""Switches a prompt to a fallback model, after the service of the requested one has failed."""

from codeloop.agent.engine import Engine
from codeloop.agent.moves import FallBack
from codeloop.schema.event import make_message_updated
from codeloop.schema.live_events import Toast, ToastShown
from codeloop.schema.message import ModelRef, format_model_ref
from codeloop.schema.wire import replace


def fall_back(engine: Engine, move: FallBack) -> None:
    """Let another model answer the prompt from the next step on, and say so to every client."""
    provider_id, _, model_id = move.model.partition("/")
    # Without the variant: it is one of the model that it was chosen with.
    model = ModelRef(provider_id=provider_id, model_id=model_id)
    engine.store.append(make_message_updated(replace(move.user, model=model)))
    text = f"{move.model} takes over from {format_model_ref(move.user.model)}, which failed: {move.reason}"
    engine.store.publish_live(
        ToastShown(properties=Toast(message=text, variant="warning", title="Another model"))
    )
