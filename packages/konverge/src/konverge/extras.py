"""The packages of konverge that not everybody installs: which extra brings each, and what to say where one is missing.

The clusters, boxes and resolution are packages of their own; `konverge` finds them by entry points, or imports them
where an option asks for them.
"""

from __future__ import annotations

from importlib.util import find_spec

from konverge.errors import ConfigurationError

__all__ = ["missing_extra", "missing_package", "source_folders"]

# By import name, the extra that brings the package.
_EXTRAS = {"konverge_box": "box", "konverge_cluster": "local", "konverge_resolution": "resolution"}


def missing_extra(what: str, extra: str) -> ConfigurationError:
    """The error that says which extra brings what somebody asked for.

    Args:
        what: What was asked for.
        extra: The extra.
    """
    return ConfigurationError(f"{what} is not installed: pip install 'konverge[{extra}]' brings it")


def missing_package(what: str, error: ImportError) -> ImportError | ConfigurationError:
    """The error for an import that failed: which extra brings the package, or the error itself if it is no part of us.

    Args:
        what: What needs the import.
        error: How it failed.
    """
    extra = _EXTRAS.get((error.name or "").partition(".")[0])
    return error if extra is None else missing_extra(what, extra)


def source_folders() -> tuple[str, ...]:
    """The folders that have konverge's own code, of all its packages that are installed."""
    specs = [find_spec(name) for name in ("konverge", *_EXTRAS)]
    return tuple(folder for spec in specs if spec is not None for folder in spec.submodule_search_locations or ())
