"""Dialogs that sign in at a provider: ask for the method and its inputs, show the sign-in page."""

import asyncio
from collections.abc import Sequence
from enum import Enum

from codeloop.kit.asyncio_tasks import cancel_all
from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.api.providers import (
    PROVIDER_AUTHORIZE,
    PROVIDER_CALLBACK,
    FinishSignIn,
    ProviderAuthMethod,
    ProviderDetails,
    StartedSignIn,
    StartSignIn,
    is_prompt_needed,
)
from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.dialogs.parts.pick import Pick, PickSource
from codeloop.tui.dialogs.parts.sign_in_screen import SignInScreen
from codeloop.tui.dialogs.parts.text_input import TextInput
from codeloop.tui.dialogs.picker import Picker

_PASTE_CODE_HINT = "Then paste the code that it shows."


class SignInOutcome(Enum):
    """How a sign-in ended: complete, cancelled, or with the user's choice to type a key instead."""

    COMPLETE = "complete"
    CANCELLED = "cancelled"
    KEY = "key"


class ProviderSignIn:
    """Signs in at a provider step by step. `methods`: all that the server offers,
    its own or those of plugins.
    """

    def __init__(
        self,
        context: DialogContext,
        provider: ProviderDetails,
        methods: Sequence[ProviderAuthMethod],
    ) -> None:
        self._context = context
        self._provider = provider
        self._methods = methods
        self.has_typed_key = False
        """Whether an input that is a secret was typed."""
        self.message = ""
        """The server's message about a sign-in that needed no page."""

    async def sign_in(self) -> SignInOutcome:
        """Ask for the method and its inputs, and wait until the sign-in ends.
        Raises CodeloopError if it fails.
        """
        number = await self._choose_method()
        if number is None:
            return SignInOutcome.CANCELLED
        method = self._methods[number]
        if method.type == "api" and not method.prompts:
            return SignInOutcome.KEY
        answers = await self._ask_inputs(method)
        if answers is None:
            return SignInOutcome.CANCELLED
        request = StartSignIn(provider_id=self._provider.id, method=number, inputs=answers)
        start = await self._context.client.call(PROVIDER_AUTHORIZE, request)
        if start.url:
            return await self._finish(number, start)
        self.message = start.instructions
        return SignInOutcome.COMPLETE

    async def _choose_method(self) -> int | None:
        """Return the index of the method that the user chooses; None: cancelled."""
        if len(self._methods) == 1:
            return 0

        async def list_picks() -> Sequence[Pick[int]]:
            return [Pick(number, method.label) for number, method in enumerate(self._methods)]

        source = PickSource(f"How to sign in at {self._provider.name}?", list_picks)
        return await self._context.ask(Picker(source, self._context.get_styles))

    async def _ask_inputs(self, method: ProviderAuthMethod) -> dict[str, str] | None:
        """Ask for a method's inputs and return them by key; None: cancelled."""
        answers: dict[str, str] = {}
        for prompt in method.prompts or ():
            # Some inputs depend on earlier answers.
            if not is_prompt_needed(prompt, answers):
                continue
            message, options = str(prompt.get("message", "")), prompt.get("options")
            is_secret = prompt.get("hidden") is True
            if is_list(options) and options:
                picks = [
                    Pick(str(each.get("value", "")), str(each.get("label", each.get("value", ""))))
                    for each in options
                    if is_object(each)
                ]

                # The default binds the picks of this round of the loop.
                async def list_picks(picks: Sequence[Pick[str]] = picks) -> Sequence[Pick[str]]:
                    return picks

                answer = await self._context.ask(
                    Picker(PickSource(message, list_picks), self._context.get_styles)
                )
            else:
                about = str(prompt.get("placeholder", ""))
                answer = await self._context.ask(
                    TextInput(message, self._context.get_styles, about=about, is_secret=is_secret)
                )
            if answer is None:
                return None
            answers[str(prompt.get("key", ""))] = answer.strip()
            self.has_typed_key = self.has_typed_key or (is_secret and bool(answer.strip()))
        return answers

    async def _finish(self, number: int, start: StartedSignIn) -> SignInOutcome:
        """Show the address of the sign-in page until the server reports the end,
        or a code is pasted.
        """
        client, by_code = self._context.client, start.method == "code"
        next_step = "\n".join(
            filter(None, (start.instructions, _PASTE_CODE_HINT if by_code else ""))
        )
        screen = SignInScreen(self._provider.name, start.url, next_step, self._context.get_styles)
        if by_code:
            code = await self._context.ask(screen)
            if not code:
                return SignInOutcome.CANCELLED
            await client.call(
                PROVIDER_CALLBACK,
                FinishSignIn(provider_id=self._provider.id, method=number, code=code.strip()),
            )
            return SignInOutcome.COMPLETE
        finish = FinishSignIn(provider_id=self._provider.id, method=number)
        finish_task = asyncio.create_task(client.call(PROVIDER_CALLBACK, finish))

        def close_screen(task: asyncio.Task[bool]) -> None:
            if not task.cancelled():
                screen.dismiss(None)

        finish_task.add_done_callback(close_screen)
        try:
            await self._context.ask(screen)
            if finish_task.done():
                await finish_task
                return SignInOutcome.COMPLETE
            return SignInOutcome.CANCELLED
        finally:
            # The user has closed the screen: the server must not wait for the browser any longer.
            await cancel_all([finish_task])
