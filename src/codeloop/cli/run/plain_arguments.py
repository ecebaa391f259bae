"""The usual arguments of `codeloop run`, read without click, which takes a tenth
of the time of a short run to load.
"""

from msgspec import convert

from codeloop.cli.option_values import Options

# Which field of `Options` an option sets: to True, or to the word after it.
# The options that need a check or a conversion are click's.
FLAGS = {
    "--auto": "auto",
    "-c": "continue_latest",
    "--continue": "continue_latest",
    "--fork": "fork",
    "--trust": "trust",
    "--thinking": "thinking",
    "--no-wait": "no_wait",
    "--no-compact": "no_compact",
}
VALUES = {
    "-m": "model",
    "--model": "model",
    "--agent": "agent",
    "--variant": "variant",
    "-s": "session",
    "--session": "session",
    "--title": "title",
}


def read_plain_arguments(arguments: list[str]) -> Options | None:
    """Return the options that the arguments after `run` give, as click would;
    None if any of them is left to click.
    """
    words: list[str] = []
    flags: dict[str, bool] = {}
    values: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        if argument in FLAGS:
            flags[FLAGS[argument]] = True
        elif argument in VALUES:
            value = next(rest, None)
            if value is None:
                return None
            values[VALUES[argument]] = value
        # `-` alone is stdin.
        elif argument.startswith("-") and argument != "-":
            return None
        else:
            words.append(argument)
    return convert({"message": words, **flags, **values}, Options)
