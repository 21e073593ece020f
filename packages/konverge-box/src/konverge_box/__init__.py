"""The operator box: an operator that is written as data, in one YAML file.

What comes in is the text of a file and the objects of a cluster; what goes out is components, which the same engine
reconciles as those of Python. A box is compiled once. What its expressions may do is bounded in time and size, so that
one box, or one object, cannot hold up another.
"""
