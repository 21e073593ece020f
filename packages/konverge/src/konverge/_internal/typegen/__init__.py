"""TypedDicts from schemas, with which editors complete an object's fields and type checkers find errors.

The input is the schemas of an API server: the OpenAPI v3 definitions of its own kinds, or CustomResourceDefinitions.
The output is the text of modules; equal schemas give equal text. It generates ``konverge.types`` and the output of
``konverge types``.

Schemas are untrusted input. Their content appears in the text only as a string or number literal, or as letters and
digits of a class name. The depth of a schema and the size of the output are limited.
"""

from konverge._internal.typegen.builtin_modules import generate_builtin_modules
from konverge._internal.typegen.custom_resources import generate_custom_resource_module

__all__ = ["generate_builtin_modules", "generate_custom_resource_module"]
