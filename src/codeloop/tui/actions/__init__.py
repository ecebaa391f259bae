"""The functions behind the commands of the terminal UI."""
