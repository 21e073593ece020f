"""Validation of objects before storage: metadata, the built-in kinds, and structural schemas.

A rule reads an object (on an update also the object that it replaces) and yields errors; it changes nothing. All errors
of an object are reported together, each with its field, in the text of the API server. For the built-in kinds, only the
rules that authors meet in practice are implemented.
"""
