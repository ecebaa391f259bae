"""The main loop of the Python host process: routes messages to the extensions' workers."""

import os
import platform
from threading import Lock

from codeloop.extend.host.protocol import (
    DESCRIPTOR_VARIABLE,
    VERSION,
    AnswerError,
    AskHook,
    CallOrigin,
    CallTool,
    CancelRequest,
    EventBatch,
    HostHello,
    HostReady,
    LoadRequest,
)
from codeloop.extend.host.python.channel import HostChannel
from codeloop.extend.host.python.worker import Worker


def main() -> None:
    """Serve until the connection ends; then exit at once, even if extensions are running."""
    # Removed from the environment, so that programs which extensions start don't see it.
    channel = HostChannel(int(os.environ.pop(DESCRIPTOR_VARIABLE)))
    host = PythonHost(channel)
    for message in channel.read_messages():
        host.handle(message)
    # Threads of extensions may never end, and a normal exit would wait for them.
    os._exit(0)


class PythonHost:
    """The loaded extensions, by name."""

    def __init__(self, channel: HostChannel) -> None:
        self._channel = channel
        self._workers: dict[str, Worker] = {}
        self._origin = CallOrigin()

    def handle(self, message: object) -> None:
        """Handle a message, or pass it on."""
        match message:
            case HostHello():
                os.chdir(message.directory)
                self._origin = CallOrigin(directory=message.directory, worktree=message.root)
                self._channel.send(HostReady(VERSION, f"python {platform.python_version()}"))
            case LoadRequest():
                worker = Worker(self._channel, message.extension, self._origin)
                self._workers[message.extension.name] = worker
                worker.load(message.id)
            case CallTool() | AskHook():
                self._ask(message)
            case CancelRequest():
                for worker in self._workers.values():
                    worker.cancel(message.id)
            case EventBatch():
                self._forward_events(message)
            case _:
                pass

    def _ask(self, message: CallTool | AskHook) -> None:
        worker = self._workers.get(message.extension)
        if worker is None:
            self._channel.send(
                AnswerError(message.id, "missing", f"{message.extension} is not loaded")
            )
            return
        if isinstance(message, CallTool):
            worker.call(message)
        else:
            worker.ask(message)

    def _forward_events(self, message: EventBatch) -> None:
        """Forward events; they are acknowledged when all followers are done."""
        followers = [worker for worker in self._workers.values() if worker.follows_events]
        if not followers:
            self._channel.acknowledge(len(message.events))
            return
        # The workers finish in threads of their own, so the countdown needs a lock.
        lock = Lock()
        unfinished = len(followers)

        def finish() -> None:
            nonlocal unfinished
            with lock:
                unfinished -= 1
                is_last = unfinished == 0
            if is_last:
                self._channel.acknowledge(len(message.events))

        for worker in followers:
            worker.follow(message.events, on_done=finish)
