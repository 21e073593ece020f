"""The git resolver, against real servers."""
