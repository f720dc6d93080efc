"""The cost model: what one training step, and one run, takes. Pure functions of numbers; knows nothing of files."""
