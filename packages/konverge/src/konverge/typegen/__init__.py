"""TypedDicts from schemas: Python by which an editor completes an object's fields and a type checker finds a mistake.

What comes in are schemas, as an API server has them: the OpenAPI v3 definitions of its own kinds, or
CustomResourceDefinitions. What goes out is the text of modules; equal schemas give equal text. ``konverge.types`` is
written with it, and ``konverge types`` prints what it makes of anyone's definitions.

A schema may come from anybody. Nothing of it reaches the text but as the literal of a string or a number, or as letters
and digits in the name of a class; how deep it may nest and how much may come of it are bounded.
"""

from konverge.typegen.builtin_modules import generate_builtin_modules
from konverge.typegen.custom_resources import generate_custom_resource_module

__all__ = ["generate_builtin_modules", "generate_custom_resource_module"]
