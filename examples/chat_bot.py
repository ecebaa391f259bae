"""The skeleton of a bot for Slack and the like: a thread is a session,
and a person in it allows what is risky.

Replace `Console` by your service: it calls `bot.heard(thread, text)` for each message,
and has an `async def say`.
"""

import asyncio
from typing import Protocol

import codeloop


class Chat(Protocol):
    async def say(self, thread: str, text: str) -> None: ...


class Bot:
    """Answers in threads; `close` waits for what it is doing."""

    def __init__(self, project: codeloop.AgentProject, chat: Chat) -> None:
        self._project = project
        self._chat = chat
        # Keep the ids in a database to survive a restart.
        self._sessions: dict[str, codeloop.AgentSession] = {}
        self._asked: dict[str, asyncio.Future[bool]] = {}
        self._work: set[asyncio.Task[None]] = set()

    def heard(self, thread: str, text: str) -> None:
        """Take in a message: the answer to a question, or something to do."""
        asked = self._asked.pop(thread, None)
        if asked is not None:
            asked.set_result(text.strip().lower() in {"y", "yes"})
            return
        task = asyncio.create_task(self._answer(thread, text))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _answer(self, thread: str, text: str) -> None:
        async def allowed(question: codeloop.PermissionQuestion) -> bool:
            self._asked[thread] = asyncio.get_running_loop().create_future()
            answer = self._asked[thread]
            await self._chat.say(thread, f"May I? {question} (yes/no)")
            return await answer

        if thread not in self._sessions:
            self._sessions[thread] = await self._project.session(on_permission=allowed)
        try:
            answer = await self._sessions[thread].ask(text)
        except codeloop.CodeloopError as error:
            await self._chat.say(thread, f"That did not work: {error}")
        else:
            await self._chat.say(thread, answer.text)

    async def close(self) -> None:
        """Wait until everything is answered."""
        await asyncio.gather(*self._work)


class Console:
    """Stands in for a service: one thread, at the terminal."""

    async def say(self, thread: str, text: str) -> None:
        print(f"[{thread}] {text}")


async def main(directory: str = ".") -> None:
    async with codeloop.open(directory) as project:
        bot = Bot(project, Console())
        while line := (await asyncio.to_thread(input, "> ")).strip():
            bot.heard("terminal", line)
        await bot.close()


if __name__ == "__main__":
    asyncio.run(main())
