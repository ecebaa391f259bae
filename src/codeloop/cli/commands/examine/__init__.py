"""Commands that show the state of this installation and why something does not
work: `doctor` and `debug`.
"""
