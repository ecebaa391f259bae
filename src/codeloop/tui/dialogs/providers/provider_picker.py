"""The dialog of providers: signs in or asks for a key, tries it at once,
and closes with a model that answers.
"""

from asyncio import timeout
from collections.abc import Sequence
from functools import partial

from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.providers import (
    API_KEY_LABEL,
    AUTH_REMOVE,
    AUTH_SET,
    PROVIDER_AUTH,
    PROVIDER_AUTHORIZE,
    PROVIDER_LIST,
    ApiAuth,
    KnownProviders,
    ProviderAuthMethod,
    ProviderDetails,
    ProviderId,
    SetAuth,
    StartSignIn,
)
from codeloop.schema.api.session_inputs import ABORT, PROMPT, Prompt, RunLimits, TextPartInput
from codeloop.schema.api.session_requests import (
    SESSION_CREATE,
    SESSION_DELETE,
    CreateSession,
    SessionId,
)
from codeloop.schema.bounds.tui import PROVIDER_TRY
from codeloop.schema.errors import (
    APIError,
    MessageError,
    ProviderAuthError,
    UnknownData,
    UnknownError,
    get_error_message,
)
from codeloop.schema.message import AssistantMessage, ModelRef
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import replace
from codeloop.tui.dialogs.parts.confirm import Confirm
from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.dialogs.parts.pick import Pick, PickAction, PickSource
from codeloop.tui.dialogs.parts.text_input import TextInput
from codeloop.tui.dialogs.picker import Picker
from codeloop.tui.dialogs.providers.custom_server import CUSTOM_SERVER_TITLE, CustomServerSetup
from codeloop.tui.dialogs.providers.provider_sign_in import ProviderSignIn, SignInOutcome

LOCAL_GROUP = "On this machine"
CONNECTED_GROUP = "With a key"
COMMON_GROUP = "Often used"
OTHER_GROUP = "All others"
_GROUPS = (LOCAL_GROUP, CONNECTED_GROUP, COMMON_GROUP, OTHER_GROUP)
"""The groups of providers, in the order of the list."""
_COMMON_IDS = (
    "anthropic",
    "openai",
    "google",
    "openrouter",
    "deepseek",
    "mistral",
    "groq",
    "xai",
    "github-copilot",
)
CHOOSE_AGAIN_HINT = "Choose it once more to use it all the same."
_CUSTOM_SERVER_WORDS = "other custom address base url openai compatible"
"""Search words that find the entry of the user's own server."""


class ProviderPicker(Picker[ModelRef]):
    """Lists providers; closes with a model of one that has answered."""

    def __init__(self, context: DialogContext, title: str = "Providers") -> None:
        self._dialog_context = context
        self._providers = KnownProviders(all=[], default={}, connected=[])
        self._methods: dict[str, list[ProviderAuthMethod]] = {}
        self._failed_ids: set[str] = set()
        self.is_used = False
        """Whether a provider was chosen: then the filter's text was meant as a filter,
        not as the start of a prompt.
        """
        actions = (
            PickAction("ctrl+k", "enter a key", self._sign_in),
            PickAction("ctrl+d", "forget the key", self._forget),
        )
        source = PickSource(
            title=title,
            load=self._load_rows,
            actions=actions,
            choose_label="use it",
        )
        super().__init__(source, context.get_styles)

    async def _load_providers(self) -> None:
        client, none = self._dialog_context.client, NoArguments()
        self._providers = await client.call(PROVIDER_LIST, none)
        self._methods = await client.call(PROVIDER_AUTH, none)

    async def _load_rows(self) -> Sequence[Pick[ModelRef]]:
        await self._load_providers()
        # The empty id marks the row that asks for a server of the user's own.
        custom_server = Pick(
            ModelRef(provider_id="", model_id=""),
            CUSTOM_SERVER_TITLE,
            detail="by its address",
            group=COMMON_GROUP,
            search_text=_CUSTOM_SERVER_WORDS,
        )
        return sorted([*map(self._make_pick, self._providers.all), custom_server], key=_rank_pick)

    def _make_pick(self, provider: ProviderDetails) -> Pick[ModelRef]:
        is_ready = provider.id in self._providers.connected
        is_local = is_ready and provider.source == "custom" and not provider.env
        # By `ProviderDetails.source`.
        states = {
            "env": "key from the environment",
            "config": "configured",
            "api": "key stored",
            "custom": "answers",
        }
        models = len(provider.models)
        detail = (
            states[provider.source] if is_ready else f"{models} model{'' if models == 1 else 's'}"
        )
        detail += ", did not answer" if provider.id in self._failed_ids else ""
        can_connect = is_ready or provider.id in self._methods
        if is_ready:
            group = LOCAL_GROUP if is_local else CONNECTED_GROUP
        else:
            group = COMMON_GROUP if provider.id in _COMMON_IDS and can_connect else OTHER_GROUP
        hint = ", ".join(provider.env[:1]) if can_connect else "needs more than a key"
        value = ModelRef(
            provider_id=provider.id, model_id=self._providers.default.get(provider.id, "")
        )
        search_text = f"{provider.id} {' '.join(provider.env)}"
        return Pick(
            value, provider.name, detail=detail, hint=hint, group=group, search_text=search_text
        )

    def choose(self, value: ModelRef) -> None:
        """Ask for a key if needed; then try the provider."""
        self.is_used = True
        self.perform(partial(self._use_provider, value))

    async def _use_provider(self, model: ModelRef) -> None:
        if not model.provider_id:
            await self._add_custom_server()
            return
        if model.provider_id not in self._providers.connected:
            if await self._sign_in(model):
                self.reload()
            return
        if model.provider_id in self._failed_ids:
            # Chosen once more: the user knows better.
            self.dismiss(model)
            return
        error = await self._try(model)
        if error is None:
            return
        if self._can_correct(model, error):
            if await self._sign_in(model):
                self.reload()
        else:
            self._failed_ids.add(model.provider_id)
            self.notify(CHOOSE_AGAIN_HINT, timeout=15, markup=False)

    def _can_correct(self, model: ModelRef, error: MessageError) -> bool:
        """Return whether signing in again can correct an error: with another key,
        or another deployment's name.
        """
        if isinstance(error, ProviderAuthError):
            return (
                model.provider_id in self._methods
                and not _find_provider(self._providers, model).preferred_key
            )
        return _lacks_deployment(error, self._methods.get(model.provider_id, []))

    async def _add_custom_server(self) -> None:
        """Add a server of the user's own, and try it."""
        ids = {each.id for each in self._providers.all}
        model = await CustomServerSetup(self._dialog_context, ids).add_server()
        if model is not None:
            await self._load_providers()
            if await self._try(model) is not None:
                self._failed_ids.add(model.provider_id)
                self.reload()

    async def _try(self, model: ModelRef, note_on_silence: str = "") -> MessageError | None:
        """Ask a provider for one word; close with its model if it answers,
        else show the error (see `_try_model`).
        """
        name = one_line(_find_provider(self._providers, model).name, 60)
        self.notify(f"Trying {name}…", markup=False)
        error = await _try_model(self._dialog_context, model, note_on_silence)
        if error is None:
            self.notify(f"{name} answers.", markup=False)
            self.dismiss(model)
        else:
            self.notify(
                one_line(get_error_message(error), 400), severity="error", timeout=15, markup=False
            )
        return error

    async def _sign_in(self, model: ModelRef | None) -> bool:
        """Sign in where the server offers it, else store a key; return whether the rows changed."""
        if model is None or not model.provider_id:
            return False
        self.is_used = True
        provider = _find_provider(self._providers, model)
        methods = self._methods.get(provider.id, [])
        if methods and not any(method.type == "oauth" or method.prompts for method in methods):
            return await self._enter_key(provider, model)
        # Without a method of signing in the server refuses this; its error says what is missing.
        if not methods:
            await self._dialog_context.client.call(
                PROVIDER_AUTHORIZE, StartSignIn(provider_id=provider.id, method=0)
            )
        sign_in = ProviderSignIn(self._dialog_context, provider, methods)
        outcome = await sign_in.sign_in()
        if outcome == SignInOutcome.KEY:
            return await self._enter_key(provider, model)
        if outcome == SignInOutcome.CANCELLED:
            return False
        if sign_in.message:
            self.notify(one_line(sign_in.message, 400), timeout=10, markup=False)
        await self._load_providers()
        error = await self._try(
            replace(model, model_id=self._providers.default.get(provider.id, "") or model.model_id)
        )
        if error is None:
            return False
        if isinstance(error, ProviderAuthError) and sign_in.has_typed_key:
            await self._dialog_context.client.call(AUTH_REMOVE, ProviderId(provider_id=provider.id))
        elif _lacks_deployment(error, self._methods.get(provider.id, [])):
            return await self._sign_in(model)
        else:
            self._failed_ids.add(provider.id)
        return True

    async def _enter_key(self, provider: ProviderDetails, model: ModelRef) -> bool:
        """Ask for a key, store it and try it; remove it if the service refuses it.
        Return whether the rows changed.
        """
        about = f"The key is stored for {one_line(provider.name, 60)} alone, and tried at once with one short request."
        methods = self._methods.get(provider.id, [])
        # A label of the provider's own says which kind of key it is.
        if len(methods) == 1 and methods[0].label != API_KEY_LABEL:
            about = f"{one_line(methods[0].label, 400)}\n\n{about}"
        if provider.preferred_key:
            about = f"A key that you enter does not count before the one of {one_line(provider.preferred_key, 300)}."
        title = f"Key for {one_line(provider.name, 60)}"
        key = await self._dialog_context.ask(
            TextInput(title, self.get_styles, about=about, is_secret=True)
        )
        if not key:
            return False
        client = self._dialog_context.client
        keyring: bool | None = None
        if self._providers.keyring:
            keyring = await _choose_keyring(self._dialog_context)
            if keyring is None:
                return False
        await client.call(
            AUTH_SET, SetAuth(provider_id=provider.id, auth=ApiAuth(key=key, keyring=keyring))
        )
        error = await self._try(model, " The key is kept; try again.")
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
        if not await self._dialog_context.ask(
            Confirm("Forget the stored key?", text, "forget", self.get_styles)
        ):
            return False
        return await self._dialog_context.client.call(
            AUTH_REMOVE, ProviderId(provider_id=model.provider_id)
        )


def _find_provider(providers: KnownProviders, model: ModelRef) -> ProviderDetails:
    return next(each for each in providers.all if each.id == model.provider_id)


def _rank_pick(pick: Pick[ModelRef]) -> tuple[int, int, str]:
    """Return the sort key of a row: its group, the place of a common provider, and the title."""
    provider_id = pick.value.provider_id
    place = _COMMON_IDS.index(provider_id) if provider_id in _COMMON_IDS else len(_COMMON_IDS)
    return _GROUPS.index(pick.group), place, pick.title.lower()


async def _choose_keyring(context: DialogContext) -> bool | None:
    """Ask whether a key is kept in the system's keyring; None: cancelled."""

    async def list_stores() -> Sequence[Pick[str]]:
        keyring = Pick(
            "keyring", "In the system's keyring", "macOS Keychain, Secret Service, KWallet"
        )
        return [Pick("file", "In a file", "readable by you alone"), keyring]

    choice = await context.ask(
        Picker(PickSource("Where is the key kept?", list_stores), context.get_styles)
    )
    return None if choice is None else choice == "keyring"


def _lacks_deployment(error: MessageError, methods: Sequence[ProviderAuthMethod]) -> bool:
    """Return whether an error says that a model is not deployed,
    at a provider whose sign-in asks for a deployment.
    """
    is_missing = isinstance(error, APIError) and (error.data.metadata or {}).get("kind") == "model"
    return is_missing and any(
        each["key"] == "deployment" for method in methods for each in method.prompts or ()
    )


async def _try_model(
    context: DialogContext, model: ModelRef, note_on_silence: str
) -> MessageError | None:
    """Ask a model for one word, in a session that is deleted again;
    return the error, or None if it answered.

    `note_on_silence` ends the message of the error if there is no answer in time.
    """
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
        return UnknownError(
            data=UnknownData(message=f"It did not answer in {seconds} s.{note_on_silence}")
        )
    finally:
        # After the timeout, or if the dialog is closed, the turn goes on without the call that
        # began it; and a session that works can't be deleted.
        await client.call(ABORT, SessionId(session_id=session.id))
        await client.call(SESSION_DELETE, SessionId(session_id=session.id))
