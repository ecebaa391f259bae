"""What is known about shell lines and programs: what a line means, touches and may change. Pure."""
