"""Completion of names in shells: the functions that click calls when the user presses Tab."""
