"""The conversation line by line (`codeloop --plain`): its terminal,
its session and its slash commands.
"""
