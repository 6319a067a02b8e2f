"""Variations of a config, trained one after another with several seeds, and a table of what came of them."""
