"""The command line: `codeloop` and its subcommands,
which call the app or a server and print the results.
"""
