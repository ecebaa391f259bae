"""Input from the terminal: split, parsed into keys, pastes detected,
and given out a few keys at a time.
"""
