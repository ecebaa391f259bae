"""What slash commands are called, and what they answer in every terminal."""
