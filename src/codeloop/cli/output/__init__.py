"""Output of the command line: the views of a turn in each format, streams that never block,
colours and Markdown.
"""
