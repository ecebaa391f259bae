"""What the model answers: its text as it streams in, calls that it wrote as text, ends that come too early."""
