"""What may be stored: the rules of object metadata, of the built-in kinds, and of structural schemas.

A rule looks at an object (on an update also at what it replaces) and answers mistakes; it changes nothing. All
mistakes of an object are told at once, each with its field, in the API server's wording. The built-in kinds are held
to the rules that authors meet in practice, not to every rule of the real server.
"""
