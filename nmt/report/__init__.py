"""Runs as a page of HTML: what they were trained on, how they went, what they make of sentences."""
