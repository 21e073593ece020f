"""The cluster in memory: collections that are kept like the server's, and read instead of it.

What comes in are lists and watch events, and the answers to our own writes; what goes out are objects (fresh copies,
which a reader may change) and changes (the metadata before and after). Three promises hold:

* a reader sees the collection as of some whole list and all that came later, never half a list;
* a reader sees what this process has written, at once, and never an older state again;
* what vanished while no watch was open is told as a deletion.

`Store`, `Index` and `Reflector` are pure; `Informer` (a kind, made of collections) and `InformerFactory` move the
bytes.
"""

from konverge.cache.indexes import IndexFunction, label_index
from konverge.cache.informer import Informer
from konverge.cache.informer_factory import InformerFactory
from konverge.cache.informer_statistics import InformerStatistics
from konverge.cache.options import CacheOptions, Transform
from konverge.cache.reflector import Reflector
from konverge.cache.reflector_driver import ChangeCallback
from konverge.cache.store import Store, StoreChange

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
