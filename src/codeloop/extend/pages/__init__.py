"""Agents and commands written as pages of markdown, in our form and in that of other programs."""
