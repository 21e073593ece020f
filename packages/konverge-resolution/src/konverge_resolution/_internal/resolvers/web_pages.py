"""Addresses of files behind the web pages that git servers show for them. Pure."""

from __future__ import annotations

import re

from yarl import URL

__all__ = ["suggest_raw_url"]

_GITHUB = re.compile(r"/(?P<repository>[^/]+/[^/]+)/blob/(?P<file>.+)")
_REPLACEMENTS = (
    (re.compile(r"/-/blob/"), "/-/raw/"),  # GitLab
    (re.compile(r"/src/(branch|tag|commit)/"), r"/raw/\1/"),  # Gitea and Forgejo
    (re.compile(r"^(/[^/]+/[^/]+)/blob/"), r"\1/raw/"),  # GitHub on another host
)


def suggest_raw_url(url: URL) -> str:
    """Return the address of the file that a web page of GitHub, GitLab, Gitea or Forgejo shows; empty for other pages.

    Args:
        url: The address of the page.
    """
    plain = url.with_query(None)
    if url.host == "github.com" and (found := _GITHUB.fullmatch(url.raw_path)):
        return f"https://raw.githubusercontent.com/{found['repository']}/{found['file']}"
    for pattern, replacement in _REPLACEMENTS:
        path, count = pattern.subn(replacement, url.raw_path, 1)
        if count:
            return str(plain.with_path(path, encoded=True))
    return ""
