"""What servers ask of us while they work on a call."""
