"""Work until a goal is reached: rounds, each ended by checks that codeloop runs itself."""
