"""Measurements of hot paths, as ratios against a floor in the same run; `python -m bench` prints them."""
