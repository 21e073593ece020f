"""Types without patterns and without fractional steps, for which msgspec checks everything else.

Python's ``re`` backtracks: forty characters can block ``^([a-z]+-?)+$``, and the whole process, for hours. Any user who
can create an object could stop the operator, because an API server calls a defaulting webhook before it validates the
schema. The server matches every pattern afterwards in linear time (RE2), so stored objects need no second match.

The API server and Python round a quotient differently: the server accepts 0.3 as a multiple of 0.1, msgspec does not.

msgspec has no option for this and stores the constraint in the type. Therefore a class with such a constraint at any
depth is decoded as a subclass with other annotations. Its instances become instances of the class as soon as their
fields are set. (``__init_subclass__`` of the class runs for the subclass.)
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from operator import or_
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import structs

__all__ = ["relax_type"]

_field: Any = msgspec.field  # its stub does not allow both defaults, though one of them may be absent
_OTHER_CONSTRAINTS = ("gt", "ge", "lt", "le", "min_length", "max_length", "tz")


def relax_type(hint: Any) -> Any:
    """Return the type without patterns and fractional steps, at every depth; the identical type if there are none.

    Args:
        hint: A class with fields, or the type hint of a field.
    """
    if isinstance(hint, NewType):
        inner = relax_type(hint.__supertype__)
        return hint if inner is hint.__supertype__ else inner
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is None or origin is Literal:
        return _relax_class(hint) if isinstance(hint, type) and _has_fields(hint) else hint
    if origin is Annotated:
        kept = [_relax_constraints(each) for each in hint.__metadata__]
        found = reduce(lambda inner, each: Annotated[inner, each], kept, relax_type(arguments[0]))
        is_same = get_args(found)[0] is arguments[0] and all(map(_is_identical, kept, hint.__metadata__))
        return hint if is_same else found
    inside = tuple(map(relax_type, arguments))
    if all(map(_is_identical, inside, arguments)):
        return hint
    return reduce(or_, inside) if origin in (Union, types.UnionType) else origin[inside]


def _is_identical(one: object, other: object) -> bool:
    return one is other


def _relax_constraints(meta: Any) -> Any:
    if not isinstance(meta, msgspec.Meta):
        return meta
    step = meta.multiple_of
    has_fractional_step = step is not None and not float(step).is_integer()
    if meta.pattern is None and not has_fractional_step:
        return meta
    kept = {name: getattr(meta, name) for name in _OTHER_CONSTRAINTS}
    return msgspec.Meta(**kept, multiple_of=None if has_fractional_step else step)


def _has_fields(cls: type) -> bool:
    return issubclass(cls, msgspec.Struct) or hasattr(cls, "__dataclass_fields__") or hasattr(cls, "__attrs_attrs__")


@lru_cache(maxsize=256)
def _relax_class(cls: type) -> type:
    hints = get_type_hints(cls, include_extras=True)
    changed = {name: found for name, hint in hints.items() if (found := relax_type(hint)) is not hint}
    if not changed:
        return cls
    after = "__attrs_post_init__" if hasattr(cls, "__attrs_attrs__") else "__post_init__"
    namespace = {"__annotations__": changed, "__module__": cls.__module__, after: _build_class_restorer(cls, after)}
    if not issubclass(cls, msgspec.Struct):
        return _build_subclass(cls, {"__slots__": (), **namespace})
    fields = {
        field.name: _field(name=field.encode_name, default=field.default, default_factory=field.default_factory)
        for field in structs.fields(cls)
        if field.name in changed
    }
    # Fields that are declared once more come last, required ones after those with a default.
    return _build_subclass(cls, {**fields, **namespace}, kw_only=True)


def _build_subclass(cls: type, namespace: Mapping[str, Any], **options: Any) -> type:
    return types.new_class(cls.__name__, (cls,), options, lambda body: body.update(namespace))


def _build_class_restorer(cls: type, after: str) -> Callable[[Any], None]:
    """Return a function that turns a complete instance into one of the class and runs its validation."""
    validate = getattr(cls, after, None)
    # Frozen classes reject an assignment; only msgspec can set the fields of a frozen Struct.
    assign: Callable[[Any, str, Any], None] = (
        structs.force_setattr if issubclass(cls, msgspec.Struct) else object.__setattr__
    )

    def restore_class(instance: Any) -> None:
        assign(instance, "__class__", cls)
        if validate is not None:
            validate(instance)

    return restore_class
