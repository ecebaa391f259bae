"""Extensions run in processes of their own, one for each language, that speak a small protocol with us."""
