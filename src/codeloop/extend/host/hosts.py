"""The extension hosts of a project, one for each language and confinement;
their tools and hooks.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from codeloop.extend.hooks.hooks import ExtensionRaised, HookFailed
from codeloop.extend.host.event_feed import HostEventFeed
from codeloop.extend.host.extension import CallListener, Extension
from codeloop.extend.host.hook_handlers import ClosedHandler, ExtensionHandler
from codeloop.extend.host.host_callbacks import (
    HostCallbacks,
    HostKey,
    ProcessCallbacks,
    RunOperation,
)
from codeloop.extend.host.offers import (
    EVENT_HOOK,
    follows_events,
    is_idle_policy,
    is_needed_each_turn,
    offers_nothing,
)
from codeloop.extend.host.protocol import (
    CallOrigin,
    ExtensionOffer,
    HostMessage,
    OfferedTool,
    OperationCall,
    encode,
)
from codeloop.kit.asyncio_tasks import cancel_all
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.bounds.extension import HOST_CALL, HOST_SLOW_ANSWER, HOST_STOP, HOST_WAIT
from codeloop.schema.event import Event
from codeloop.schema.live_events import PartDelta
from codeloop.schema.wire import JSON
from codeloop.tool.json_schema import clean_schema
from codeloop.tool.tool import NO_TRAITS, ExternalParameters, Tool, ToolContext, ToolResult

if TYPE_CHECKING:
    from codeloop.extend.host.host import ExtensionHost

EMPTY_POLICY_REASON = "it is marked as a policy, and brought no hook when it was loaded here"
# The operation that a host requests to follow events without a hook.
_SUBSCRIBE_OPERATION = "event.subscribe"


class ExtensionHosts:
    """The hosts of a project, and the tools, hooks and failures of the extensions in them."""

    def __init__(self, extensions: Sequence[Extension], callbacks: HostCallbacks) -> None:
        self.extensions = tuple(extensions)
        self.offers: dict[str, ExtensionOffer] = {}
        self.failures: dict[str, str] = {}
        """Why extensions could not be loaded, by their names."""
        self.run_operation: asyncio.Future[RunOperation] = (
            asyncio.get_running_loop().create_future()
        )
        """The function that runs operations; set by `app/dispatch.py`."""
        self.config_answered = asyncio.Event()
        """Unset while extensions are asked for their changes of the configuration."""
        self.config_answered.set()
        self._callbacks = callbacks
        self._hosts: dict[HostKey, ExtensionHost] = {}
        """Their modules are imported with the first."""
        self._feeds: dict[HostKey, HostEventFeed] = {}
        self._is_first_turn = True
        self._offer_loads: dict[str, asyncio.Task[None]] = {}
        """The loads in the background by which offers become known, by extension name."""
        self._follower_loads: dict[HostKey, asyncio.Task[None]] = {}
        """The loads of the followers of events, by host."""
        self._following: asyncio.Task[None] | None = None
        for each in self.extensions:
            if each.problem:
                self.failures[each.name] = each.problem
            elif (offer := callbacks.offer_cache.get(each.digest)) is not None:
                self.offers[each.name] = offer

    @property
    def is_busy(self) -> bool:
        """Whether any host is working."""
        return any(host.is_busy for host in self._hosts.values())

    @property
    def pending(self) -> list[Extension]:
        """The extensions whose offer is still unknown: none is cached,
        and they were neither loaded nor have failed.
        """
        return [
            each
            for each in self.extensions
            if each.name not in self.offers and each.name not in self.failures
        ]

    def start_loading(self) -> None:
        """Start loading the extensions without a cached offer,
        and those that each turn needs (hooks, policies).
        """
        for each in self.extensions:
            is_wanted = each in self.pending or is_needed_each_turn(self.offers, each)
            if is_wanted and each.name not in self._offer_loads:
                self._offer_loads[each.name] = asyncio.create_task(self._learn_offer(each))

    async def wait_for_offers(self) -> None:
        """Wait until all offers are known, up to a limit; then warn about missing ones."""
        empty = [each for each in self.extensions if offers_nothing(self.offers, each)]
        if (
            empty
            and not list_unfinished(self._offer_loads, self.pending)
            and self._callbacks.offer_cache.refresh()
        ):
            # The packages or files that such an extension depends on may exist by now.
            for each in empty:
                del self.offers[each.name]
                self._offer_loads[each.name] = asyncio.create_task(
                    self._learn_offer(each, again=True)
                )
        if not (loads := list_unfinished(self._offer_loads, self.pending)):
            return
        await asyncio.wait(loads, timeout=HOST_WAIT.seconds)
        if missing := self.pending:
            names = ", ".join(each.name for each in missing)
            self._callbacks.warn(
                f"This turn goes without {names}: not loaded in {HOST_WAIT.seconds:g} s."
            )

    async def wait_for_config(self) -> None:
        """Wait, at the first turn only and up to a limit,
        for the extensions' changes of the configuration.
        """
        try:
            async with asyncio.timeout(HOST_WAIT.seconds if self._is_first_turn else 0):
                if loads := list_unfinished(self._offer_loads, self.pending):
                    await asyncio.wait(loads)
                await self.config_answered.wait()
        except TimeoutError:
            if self._is_first_turn and not self.pending:
                self._callbacks.warn(
                    f"This turn goes without changes of the configuration: not made in {HOST_WAIT.seconds:g} s."
                )
        # Only the first turn waits: later ones use what has arrived by then.
        self._is_first_turn = False

    def make_tools(self) -> tuple[Tool, ...]:
        """Return the known tools; of two with the same name, the later extension's."""
        tools = {
            tool.name: self._make_tool(each, tool)
            for each in self.extensions
            if each.name in self.offers
            for tool in self.offers[each.name].tools
        }
        return tuple(tools.values())

    def make_handlers(self) -> tuple[ExtensionHandler | ClosedHandler, ...]:
        """Return a handler for each extension with hooks or policies."""
        handlers: list[ExtensionHandler | ClosedHandler] = []
        for each in self.extensions:
            if each.name not in self.offers:
                if closed_hooks := frozenset(
                    (*each.policy, *self._callbacks.offer_cache.get_policy(each.path))
                ):
                    reason = self.failures.get(each.name, "it is not loaded yet")
                    handlers.append(
                        ClosedHandler(
                            each, closed_hooks, f"it can't be loaded: {reason.rstrip('.')}"
                        )
                    )
                continue
            if is_idle_policy(self.offers, each, self.extensions):
                handlers.append(ClosedHandler(each, frozenset(each.policy), EMPTY_POLICY_REASON))
                continue
            hooks = self.offers[each.name].hooks
            names = frozenset(hook.name for hook in hooks) - {EVENT_HOOK}
            policy = frozenset(hook.name for hook in hooks if hook.policy or each.policy) & names
            if names:
                reach = self._callbacks.find_reach(self.get_key(each).is_confined)
                handlers.append(ExtensionHandler(each, names, policy, self.ask, reach))
        return tuple(handlers)

    def follow(self, events: Callable[[], AsyncIterator[Event]]) -> None:
        """Start forwarding events to extensions that follow them."""
        for each in self.extensions:
            if follows_events(self.offers, each):
                self._create_feed(self.get_key(each))
        if self._feeds and self._following is None:
            self._following = asyncio.create_task(self._forward_events(events()))

    async def ask(
        self,
        extension: Extension,
        message: Callable[[int], HostMessage],
        listener: CallListener | None = None,
    ) -> Any:
        """Send an extension a request and return its answer. Raises HookFailed, ExtensionRaised."""
        host = self.get_host(self.get_key(extension))
        await self.load(extension)
        began = time.monotonic()
        try:
            return await host.ask(extension.load_spec, message, HOST_CALL.seconds, listener)
        finally:
            if (took := time.monotonic() - began) >= HOST_SLOW_ANSWER.seconds:
                self._callbacks.open_log(self.get_key(extension).name).add_line(
                    f"[codeloop: {extension.name} took {took:.2f} s]"
                )

    async def close(self) -> None:
        """End the hosts, after delivering the last events."""
        for feed in self._feeds.values():
            feed.flush()
        # The time for the last events does not run while a follower is still being loaded: on a
        # busy machine that alone can take longer, and a follower that reports the end
        # of a turn would miss it.
        loads = {
            key: task
            for key, task in self._follower_loads.items()
            if not self._feeds[key].is_drained.is_set()
        }
        if loads:
            await asyncio.wait(loads.values(), timeout=HOST_WAIT.seconds)
        for key in (key for key, task in loads.items() if not task.done()):
            self._callbacks.warn(
                f"Extensions of {key.name} miss the last events: they were not loaded in {HOST_WAIT.seconds:g} s."
            )
        with suppress(TimeoutError):
            async with asyncio.timeout(HOST_STOP.seconds):
                await asyncio.gather(*(feed.is_drained.wait() for feed in self._feeds.values()))
        for feed in self._feeds.values():
            feed.close()
        await cancel_all(
            (*self._offer_loads.values(), self._following, *self._follower_loads.values())
        )
        await asyncio.gather(*(host.close() for host in self._hosts.values()))

    async def _learn_offer(self, extension: Extension, *, again: bool = False) -> None:
        try:
            await self.load(extension, again=again)
        except (HookFailed, ExtensionRaised) as error:
            if extension.name in self.offers:
                # The cached offer is used; a failure is reported when the extension is called.
                return
            self.failures[extension.name] = str(error)
            self._callbacks.warn(f"{extension.name} can't be used: {error}")
            log = self._callbacks.open_log(self.get_key(extension).name)
            log.add_line(f"{extension.name}: {getattr(error, 'trace', '') or error}")
            self._callbacks.on_change()

    async def load(self, extension: Extension, *, again: bool = False) -> None:
        """Load an extension, and cache its offer. Raises HookFailed, ExtensionRaised."""
        if extension.problem:
            raise HookFailed(extension.problem)
        offer = await self.get_host(self.get_key(extension)).load(extension.load_spec, again=again)
        policy = tuple(sorted(hook.name for hook in offer.hooks if hook.policy))
        self._callbacks.offer_cache.store_policy(extension.path, policy, extension.digest)
        if self.offers.get(extension.name) == offer:
            return
        self.offers[extension.name] = offer
        self._callbacks.offer_cache.put(extension.digest, offer)
        for problem in offer.problems:
            self._callbacks.warn(f"{extension.name}: {problem}")
        self._callbacks.on_change()

    def _make_tool(self, extension: Extension, offered_tool: OfferedTool) -> Tool:
        async def run(arguments: JSON, ctx: ToolContext) -> ToolResult:
            hello = self._callbacks.hello
            call_origin = CallOrigin(
                session_id=ctx.session_id,
                message_id=ctx.message_id,
                call_id=ctx.call_id,
                agent=self._callbacks.find_agent(ctx.session_id, ctx.message_id),
                directory=hello.directory,
                worktree=hello.root,
            )
            # Imported late: a session that calls no extension's tool does not pay for it.
            from codeloop.extend.host.tool_calls import call_tool

            return await call_tool(
                self.ask, extension, offered_tool.name, call_origin, arguments, ctx
            )

        schema: JSON = {"type": "object", "properties": {}, **clean_schema(offered_tool.parameters)}
        description = escape_controls(offered_tool.description)
        return Tool(
            offered_tool.name,
            description,
            ExternalParameters,
            run,
            NO_TRAITS,
            schema=schema,
            origin=f"the extension {escape_controls(extension.name)}",
        )

    def get_key(self, extension: Extension) -> HostKey:
        """Return which host an extension runs in."""
        return HostKey(extension.language, self._callbacks.is_confined(extension))

    def get_host(self, key: HostKey) -> "ExtensionHost":
        """Return a host without starting it."""
        if key not in self._hosts:
            # Imported late: with cached offers most sessions start no host.
            from codeloop.extend.host.host import ExtensionHost

            log = self._callbacks.open_log(key.name)

            def log_line(line: str) -> None:
                log.add_line(f"[codeloop: {line}]")

            def acknowledge(count: int | None) -> None:
                # None: the program was restarted.
                if key in self._feeds:
                    self._feeds[key].acknowledge(count)
                    if count is None:
                        self._load_followers(key)

            callbacks = ProcessCallbacks(
                name=key.name,
                start=lambda: self._callbacks.start(key, log.feed),
                hello=self._callbacks.hello,
                log=log_line,
                warn=self._callbacks.warn,
                serve=partial(self._serve, key),
                acknowledge=acknowledge,
            )
            self._hosts[key] = ExtensionHost(callbacks)
        return self._hosts[key]

    async def _serve(self, key: HostKey, call: OperationCall) -> Any:
        if call.operation == _SUBSCRIBE_OPERATION:
            self._create_feed(key)
            self._callbacks.on_change()
            return None
        return await self._callbacks.serve(
            await asyncio.shield(self.run_operation), call, key.is_confined
        )

    def _create_feed(self, key: HostKey) -> None:
        """Create the event feed of a host, paused until its followers are loaded."""
        if key in self._feeds:
            return
        warning = f"The extension host {key.name} does not keep up with events: some are left out."

        def send(events: bytes) -> bool:
            is_sent = self.get_host(key).notify(events)
            # The program has ended and misses these events; it is restarted for the next ones.
            if not is_sent:
                self._load_followers(key)
            return is_sent

        self._feeds[key] = HostEventFeed(send, on_first_drop=partial(self._callbacks.warn, warning))
        self._load_followers(key)

    def _load_followers(self, key: HostKey) -> None:
        """Load the followers of events: in a restarted program nothing else requests them."""
        if key in self._follower_loads and not self._follower_loads[key].done():
            return
        feed = self._feeds[key]

        async def load_followers() -> None:
            try:
                if other_loads := [task for task in self._offer_loads.values() if not task.done()]:
                    # Followers are loaded last: a turn waits for the other loads.
                    await asyncio.wait(other_loads, timeout=HOST_WAIT.seconds)
                followers = [
                    each
                    for each in self.extensions
                    if self.get_key(each) == key and follows_events(self.offers, each)
                ]
                await asyncio.gather(*map(self._learn_offer, followers))
            finally:
                feed.resume()

        feed.pause()
        self._follower_loads[key] = asyncio.create_task(load_followers())

    async def _forward_events(self, events: AsyncIterator[Event]) -> None:
        async for event in events:
            is_delta = isinstance(event, PartDelta)
            feeds_with_room = [
                feed for feed in self._feeds.values() if feed.admit(is_delta=is_delta)
            ]
            if feeds_with_room:
                # Encoded once for all hosts, and not at all if none has room.
                raw = msgspec.Raw(encode(event))
                for feed in feeds_with_room:
                    feed.add(raw)


def list_unfinished(
    loads: Mapping[str, asyncio.Task[None]], extensions: Iterable[Extension]
) -> list[asyncio.Task[None]]:
    """Return the unfinished loads of these extensions."""
    tasks = (loads.get(each.name) for each in extensions)
    return [task for task in tasks if task is not None and not task.done()]
