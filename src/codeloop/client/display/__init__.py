"""What every user interface says the same way: numbers, times, calls, questions in words."""
