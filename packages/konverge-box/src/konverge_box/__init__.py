"""The operator box: an operator in one YAML file.

The input is the text of a file and the objects of a cluster. The output is components, which the same engine reconciles
as those in Python. A box is compiled once. Its expressions have limits of time and size, so that one box or one object
cannot block another.
"""
