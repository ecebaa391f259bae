"""What the tools that read and change files share: permissions, checks before an edit,
and the edit itself.
"""
