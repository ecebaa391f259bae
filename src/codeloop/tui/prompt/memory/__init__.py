"""What the prompt remembers: on the disk, and how it comes back."""
