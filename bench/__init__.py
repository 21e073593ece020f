"""Benchmarks of hot paths, as ratios to a floor in the same run; `python -m bench` prints them."""
