"""The question, asked once in a terminal, whether a directory's own configuration may count."""

from codeloop.app.project import Startup, find_setting
from codeloop.cli.ask import ask_line
from codeloop.cli.output import Output
from codeloop.config.trust import trust
from codeloop.kit.plain import inert


async def ask_trust(startup: Startup, terminal: Output) -> None:
    """Ask when there is something that only counts when the directory is trusted; a yes is kept, a no asks again."""
    setting = find_setting(startup)
    if setting.trusted or not setting.loaded.ignored:
        return
    answer = await ask_line(
        terminal,
        f"{inert(str(setting.place.root))} brings its own configuration: {inert(', '.join(setting.loaded.ignored))}\n"
        "It can run programs and choose where your prompts and keys go. Trust it? [y/N] ",
    )
    if (answer or "").strip().lower() in {"y", "yes"}:
        trust(setting.paths, setting.place.root)
