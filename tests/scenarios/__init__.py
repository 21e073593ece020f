"""Scenarios: components over the whole life of an owner with a running operator, on both clusters.

`kinds` has a `scenario` for each primitive; `test_primitives` runs all of them in parallel. The other suites test
several resources and several components together.
"""
