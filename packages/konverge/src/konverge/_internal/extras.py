"""The optional packages of konverge, their extras, and the error for a missing package.

The clusters, boxes and resolution are separate packages. `konverge` finds them by entry points, or imports them when an
option requires them.
"""

from __future__ import annotations

from importlib.util import find_spec

from konverge.errors import ConfigurationError

__all__ = ["missing_extra", "missing_package", "source_folders"]

# The extra of each package, by import name.
_EXTRAS = {"konverge_box": "box", "konverge_cluster": "local", "konverge_resolution": "resolution"}


def missing_extra(what: str, extra: str) -> ConfigurationError:
    """Return the error for a feature whose package is not installed; its message names the extra.

    Args:
        what: The feature.
        extra: The extra.
    """
    return ConfigurationError(f"{what} is not installed: pip install 'konverge[{extra}]' installs it")


def missing_package(what: str, error: ImportError) -> ImportError | ConfigurationError:
    """Return the error for a failed import: `missing_extra` for a package of konverge, else the import's own error.

    Args:
        what: The feature that requires the import.
        error: The error of the import.
    """
    extra = _EXTRAS.get((error.name or "").partition(".")[0])
    return error if extra is None else missing_extra(what, extra)


def source_folders() -> tuple[str, ...]:
    """Return the folders with the code of konverge's installed packages."""
    specs = [find_spec(name) for name in ("konverge", *_EXTRAS)]
    return tuple(folder for spec in specs if spec is not None for folder in spec.submodule_search_locations or ())
