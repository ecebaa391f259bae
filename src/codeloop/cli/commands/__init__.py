"""The subcommands of `codeloop`: a module for each, those of one subject in a folder."""
