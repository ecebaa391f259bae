"""The dialog of providers: signs in or asks for a key, tries it at once, and closes with a model that answers."""

from asyncio import timeout
from collections.abc import Sequence
from functools import partial

from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.providers import (
    API_KEY_LABEL,
    ApiAuth,
    KnownProviders,
    ProviderAuthMethod,
    ProviderDetails,
    ProviderId,
    SetAuth,
    StartSignIn,
)
from codeloop.schema.api.session_inputs import Prompt, RunLimits, TextPartInput
from codeloop.schema.api.session_requests import CreateSession, SessionId
from codeloop.schema.bounds.tui import PROVIDER_TRY
from codeloop.schema.errors import (
    CodeloopError,
    MessageError,
    ProviderAuthError,
    UnknownData,
    UnknownError,
    get_error_message,
)
from codeloop.schema.message import AssistantMessage, ModelRef
from codeloop.schema.operation import (
    AUTH_REMOVE,
    AUTH_SET,
    PROMPT,
    PROVIDER_AUTH,
    PROVIDER_AUTHORIZE,
    PROVIDER_LIST,
    SESSION_CREATE,
    SESSION_DELETE,
    NoArguments,
)
from codeloop.schema.wire import replace
from codeloop.tui.dialogs.parts.confirm import Confirm
from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.dialogs.parts.pick import Pick, PickAction, PickSource
from codeloop.tui.dialogs.parts.text_input import TextInput
from codeloop.tui.dialogs.picker import Picker
from codeloop.tui.dialogs.providers.own_server import OWN_SERVER_TITLE, OwnServer
from codeloop.tui.dialogs.providers.provider_sign_in import (
    ProviderSignIn,
    SignInOutcome,
    choose_keyring,
    lacks_deployment,
)


async def try_model(context: DialogContext, model: ModelRef) -> MessageError | None:
    """Ask a model for one word, in a session that is deleted again; return the error, or None if it answered."""
    client = context.client
    session = await client.call(SESSION_CREATE, CreateSession(title="Trying a provider"))
    try:
        prompt = Prompt(
            session_id=session.id,
            parts=[TextPartInput(text="Answer with the word: ready")],
            model=model,
            # Without tools the request is short and cheap, and can do nothing.
            tools={"*": False},
            limits=RunLimits(steps=1, attended=False),
        )
        async with timeout(PROVIDER_TRY.value / 1000):
            answer = await client.call(PROMPT, prompt)
        return answer.info.error if isinstance(answer.info, AssistantMessage) else None
    except TimeoutError:
        seconds = PROVIDER_TRY.value // 1000
        return UnknownError(data=UnknownData(message=f"It did not answer in {seconds} s. The key is kept; try again."))
    finally:
        await client.call(SESSION_DELETE, SessionId(session_id=session.id))


LOCAL_GROUP, CONNECTED_GROUP, COMMON_GROUP, OTHER_GROUP = "On this machine", "With a key", "Often used", "All others"
"""The groups of providers, in the order of the list."""
_COMMON_IDS = ("anthropic", "openai", "google", "openrouter", "deepseek", "mistral", "groq", "xai", "github-copilot")
CHOOSE_AGAIN_HINT = "Choose it once more to use it all the same."
_OWN_SERVER_WORDS = "other custom address base url openai compatible"
"""Search words that find the entry of the user's own server."""


class ProviderPicker(Picker[ModelRef]):
    """Lists providers; closes with a model of one that has answered."""

    def __init__(self, context: DialogContext, title: str = "Providers") -> None:
        self._dialog_context = context
        self._providers = KnownProviders(all=[], default={}, connected=[])
        self._methods: dict[str, list[ProviderAuthMethod]] = {}
        self._failed_ids: set[str] = set()
        self.is_used = False
        """Whether a provider was chosen: then the filter's text was meant as a filter, not as the start of a prompt."""
        actions = (
            PickAction("ctrl+k", "enter a key", self._sign_in),
            PickAction("ctrl+d", "forget the key", self._forget),
        )
        source = PickSource(
            title=title,
            load=self._load_rows,
            actions=actions,
            choose="use it",
        )
        super().__init__(source, context.colours)

    async def _load_rows(self) -> Sequence[Pick[ModelRef]]:
        client, none = self._dialog_context.client, NoArguments()
        self._providers = await client.call(PROVIDER_LIST, none)
        self._methods = await client.call(PROVIDER_AUTH, none)
        order = [LOCAL_GROUP, CONNECTED_GROUP, COMMON_GROUP, OTHER_GROUP]
        # The empty id marks the row that asks for a server of the user's own.
        own_server = Pick(
            ModelRef(provider_id="", model_id=""),
            OWN_SERVER_TITLE,
            "by its address",
            "",
            COMMON_GROUP,
            also=_OWN_SERVER_WORDS,
        )
        picks = [*map(self._make_pick, self._providers.all), own_server]
        often = {name: at for at, name in enumerate(_COMMON_IDS)}
        return sorted(
            picks,
            key=lambda pick: (order.index(pick.group), often.get(pick.value.provider_id, 99), pick.title.lower()),
        )

    def _make_pick(self, provider: ProviderDetails) -> Pick[ModelRef]:
        is_ready = provider.id in self._providers.connected
        is_local = is_ready and provider.source == "custom" and not provider.env
        # By `ProviderDetails.source`.
        states = {"env": "key from the environment", "config": "configured", "api": "key stored", "custom": "answers"}
        models = len(provider.models)
        detail = states[provider.source] if is_ready else f"{models} model{'' if models == 1 else 's'}"
        detail += ", did not answer" if provider.id in self._failed_ids else ""
        can_connect = is_ready or provider.id in self._methods
        usual_group = COMMON_GROUP if provider.id in _COMMON_IDS and can_connect else OTHER_GROUP
        group = LOCAL_GROUP if is_local else CONNECTED_GROUP if is_ready else usual_group
        hint = ", ".join(provider.env[:1]) if can_connect else "needs more than a key"
        value = ModelRef(provider_id=provider.id, model_id=self._providers.default.get(provider.id, ""))
        also = f"{provider.id} {' '.join(provider.env)}"
        return Pick(value, provider.name, detail, hint, group, also=also)

    def choose(self, value: ModelRef) -> None:
        """Ask for a key if needed; then try the provider."""
        self.is_used = True
        self.perform(partial(self._use_provider, value))

    async def _use_provider(self, model: ModelRef) -> None:
        if not model.provider_id:
            await self._add()
        elif model.provider_id not in self._providers.connected:
            if await self._sign_in(model):
                self.reload()
        elif model.provider_id in self._failed_ids:
            # Chosen once more: the user knows better.
            self.dismiss(model)
        elif (error := await self._try(model)) is None:
            return
        elif self._can_correct(model, error):
            if await self._sign_in(model):
                self.reload()
        else:
            self._failed_ids.add(model.provider_id)
            self.notify(CHOOSE_AGAIN_HINT, timeout=15, markup=False)

    def _can_correct(self, model: ModelRef, error: MessageError) -> bool:
        """Return whether signing in again can correct an error: with another key, or another deployment's name."""
        if isinstance(error, ProviderAuthError):
            return model.provider_id in self._methods and not self._find_provider(model).preferred_key
        return lacks_deployment(error, self._methods.get(model.provider_id, []))

    async def _add(self) -> None:
        """Add a server of the user's own, and try it."""
        ids = {each.id for each in self._providers.all}
        model = await OwnServer(self._dialog_context, ids).add()
        if model is not None:
            await self._load_rows()
            if await self._try(model) is not None:
                self._failed_ids.add(model.provider_id)
                self.reload()

    async def _try(self, model: ModelRef) -> MessageError | None:
        """Ask a provider for one word; close with its model if it answers, else show the error."""
        name = one_line(self._find_provider(model).name, 60)
        self.notify(f"Trying {name}…", markup=False)
        error = await try_model(self._dialog_context, model)
        if error is None:
            self.notify(f"{name} answers.", markup=False)
            self.dismiss(model)
        else:
            self.notify(one_line(get_error_message(error), 400), severity="error", timeout=15, markup=False)
        return error

    def _find_provider(self, model: ModelRef) -> ProviderDetails:
        return next(each for each in self._providers.all if each.id == model.provider_id)

    async def _sign_in(self, model: ModelRef | None) -> bool:
        """Sign in where a plugin offers it, else store a key; return whether the rows changed."""
        if model is None or not model.provider_id:
            return False
        self.is_used = True
        provider = self._find_provider(model)
        methods = self._methods.get(provider.id, [])
        if methods and not any(method.type == "oauth" or method.prompts for method in methods):
            return await self._enter_key(provider, model)
        try:
            # The error says what is missing.
            if not methods:
                await self._dialog_context.client.call(
                    PROVIDER_AUTHORIZE, StartSignIn(provider_id=provider.id, method=0)
                )
            sign_in = ProviderSignIn(self._dialog_context, provider, methods)
            outcome = await sign_in.sign_in()
        except CodeloopError as error:
            self.notify(one_line(str(error), 400), severity="error", timeout=15, markup=False)
            return False
        if outcome == SignInOutcome.KEY:
            return await self._enter_key(provider, model)
        if outcome == SignInOutcome.CANCELLED:
            return False
        if sign_in.message:
            self.notify(one_line(sign_in.message, 400), timeout=10, markup=False)
        await self._load_rows()
        error = await self._try(replace(model, model_id=self._providers.default.get(provider.id, "") or model.model_id))
        if error is None:
            return False
        if isinstance(error, ProviderAuthError) and sign_in.has_typed_key:
            await self._dialog_context.client.call(AUTH_REMOVE, ProviderId(provider_id=provider.id))
        elif lacks_deployment(error, self._methods.get(provider.id, [])):
            return await self._sign_in(model)
        else:
            self._failed_ids.add(provider.id)
        return True

    async def _enter_key(self, provider: ProviderDetails, model: ModelRef) -> bool:
        """Ask for a key, store it and try it; remove it if the service refuses it. Return whether the rows changed."""
        about = f"The key is stored for {one_line(provider.name, 60)} alone, and tried at once with one short request."
        methods = self._methods.get(provider.id, [])
        # What kind of key it is.
        if len(methods) == 1 and methods[0].label != API_KEY_LABEL:
            about = f"{one_line(methods[0].label, 400)}\n\n{about}"
        if provider.preferred_key:
            about = f"A key that you enter does not count before the one of {one_line(provider.preferred_key, 300)}."
        title = f"Key for {one_line(provider.name, 60)}"
        key = await self._dialog_context.ask(TextInput(title, self.colours, about=about, is_secret=True))
        if not key:
            return False
        client, keyring = self._dialog_context.client, None
        if self._providers.keyring and (keyring := await choose_keyring(self._dialog_context)) is None:
            return False
        try:
            await client.call(AUTH_SET, SetAuth(provider_id=provider.id, auth=ApiAuth(key=key, keyring=keyring)))
        except CodeloopError as error:
            self.notify(one_line(str(error), 400), severity="error", timeout=15, markup=False)
            return False
        error = await self._try(model)
        # With a key that is refused, the provider would look as if it were set up.
        if isinstance(error, ProviderAuthError):
            await client.call(AUTH_REMOVE, ProviderId(provider_id=provider.id))
        elif error is not None:
            self._failed_ids.add(provider.id)
        return error is not None

    async def _forget(self, model: ModelRef | None) -> bool:
        if model is None:
            return False
        text = "Its models can't be used any more until a key is entered again."
        if not await self._dialog_context.ask(Confirm("Forget the stored key?", text, "forget", self.colours)):
            return False
        return await self._dialog_context.client.call(AUTH_REMOVE, ProviderId(provider_id=model.provider_id))
