"""The question, asked once in a terminal, whether a directory's own configuration may count."""

from codeloop.app.settings import Startup, find_settings
from codeloop.cli.output.streams import Output
from codeloop.cli.questions.answerer import ask_line
from codeloop.cli.questions.reply_words import meaning
from codeloop.config.trust.store import trust
from codeloop.kit.terminal_text import inert, one_line


async def ask_trust(startup: Startup, terminal: Output) -> None:
    """Ask when there is something that only counts when the directory is trusted; a yes is kept, a no asks again."""
    settings = find_settings(startup)
    if settings.trusted or not settings.loaded.ignored:
        return
    wanted = inert(", ".join(settings.loaded.ignored))
    question = (
        f"\n{inert(str(settings.place.root))} brings its own configuration: {wanted}\n"
        "It can run programs and choose where your prompts and keys go.\n"
        "  y  trust this directory from now on (`codeloop trust --remove` takes it back)\n"
        "  n  ignore what could do harm in it, and ask again next time\n"
    )
    while True:
        answer = await ask_line(terminal, f"{question}Trust it? [y/N] ")
        if answer is None or not answer.strip():
            return
        match meaning(answer, always=False):
            case "yes":
                trust(settings.paths, settings.place.root)
                return
            case "no":
                return
            case _:
                question = f"“{one_line(answer, 40)}” is no answer here. "
