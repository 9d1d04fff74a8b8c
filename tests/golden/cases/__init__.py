"""The cases of make_golden.py, by topic."""
