"""Terminals in which an editor shows commands: the editor's own,
and those that codeloop fills with output.
"""
