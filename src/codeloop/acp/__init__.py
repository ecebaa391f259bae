"""`codeloop acp`: the Agent Client Protocol, by which editors show and control
sessions over stdin and stdout.
"""
