"""The debug page as HTML: tables, without scripts, images or external resources."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import urlencode

from konverge._internal.kube import ObjectKey
from konverge._internal.runtime.observability.debug_data import Rows

__all__ = ["CONTENT_SECURITY_POLICY", "render_history", "render_overview"]

CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Users choose the names of objects; a name that gets through as markup has no effect under this policy."""

_STYLE = (
    "body{font:14px system-ui,sans-serif;margin:2em}table{border-collapse:collapse;margin-bottom:2em}"
    "th,td{text-align:left;vertical-align:top;padding:2px 12px 2px 0;border-bottom:1px solid #ddd}"
    "td{font-family:ui-monospace,monospace;white-space:pre-wrap}"
)


def render_overview(sections: Mapping[str, Rows]) -> str:
    """Render all sections; each key links to its history."""
    return _render_page(
        "konverge", "".join(f"<h2>{escape(name)}</h2>{_render_table(rows)}" for name, rows in sections.items())
    )


def render_history(controller: str, key: ObjectKey, rows: Rows) -> str:
    """Render the history of one key."""
    return _render_page(f"{controller}: {key}", f'<p><a href="./">all</a></p>{_render_table(rows)}')


def _render_page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>{body}</body></html>"
    )


def _render_table(rows: Rows) -> str:
    if not rows:
        return "<p>none</p>"
    columns = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_render_cell(name, row)}</td>' for name in columns)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _render_cell(name: str, row: Mapping[str, Any]) -> str:
    value = row.get(name)
    if isinstance(value, list):
        return escape("\n".join(map(str, value)))
    text = escape("" if value is None else str(value))
    if name == "name" and {"controller", "namespace"} <= row.keys():
        query = urlencode({field: str(row[field]) for field in ("controller", "namespace", "name")})
        return f'<a href="story?{escape(query)}">{text}</a>'
    return text
