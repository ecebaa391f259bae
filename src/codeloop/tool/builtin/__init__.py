"""The built-in tools by folder: a description (`.md`) for each,
beside its module or that of related tools.
"""
