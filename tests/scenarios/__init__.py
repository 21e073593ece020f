"""Scenarios: components from an owner's first day to its last, looked after by a running operator, on both clusters.

`kinds` has a `scenario` for each primitive, `test_primitives` lets all of them live at once. Beside it are the suites
of what several resources, and several components, are to each other.
"""
