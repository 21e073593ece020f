"""The cache: collections in memory that follow those of the server, and are read instead of it.

The inputs are lists, watch events, and the responses to own writes. The outputs are objects (new copies that the reader
may change) and changes (the metadata before and after). Three guarantees hold:

* a reader sees the collection as of a whole list and all later changes, never a partial list;
* a reader sees an own write at once, and never an older state again;
* an object that vanished while no watch was open is reported as deleted.

`Store`, `Index` and `Reflector` are pure; `Informer` (one kind, in one or more collections) and `InformerFactory`
perform the I/O.
"""

from konverge._internal.cache.indexes import IndexFunction, label_index
from konverge._internal.cache.informer import Informer
from konverge._internal.cache.informer_factory import InformerFactory
from konverge._internal.cache.informer_statistics import InformerStatistics
from konverge._internal.cache.options import CacheOptions, Transform
from konverge._internal.cache.reflector import Reflector
from konverge._internal.cache.reflector_driver import ChangeCallback
from konverge._internal.cache.store import Store, StoreChange

__all__ = [
    "CacheOptions",
    "ChangeCallback",
    "IndexFunction",
    "Informer",
    "InformerFactory",
    "InformerStatistics",
    "Reflector",
    "Store",
    "StoreChange",
    "Transform",
    "label_index",
]
