from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.errors import BadRequestError, ExpiredError
from konverge.kube import ObjectKey
from konverge_cluster._internal.embedded.builtin_resources import list_builtin_resources
from konverge_cluster._internal.embedded.list_pages import read_page
from konverge_cluster._internal.embedded.selection import Selection
from konverge_cluster._internal.embedded.storage import Storage

RESOURCE = next(each for each in list_builtin_resources() if each.storage == "configmaps")
EVERYTHING = Selection()


def build_storage(*names: str) -> Storage:
    storage = Storage()
    for name in names:
        storage.store("configmaps", {"metadata": {"namespace": "default", "name": name}})
    return storage


def names_of_pages(storage: Storage, limit: int) -> list[list[str]]:
    pages, token = [], ""
    while True:
        page = read_page(storage, "configmaps", EVERYTHING, limit=limit, token=token)
        pages.append([each.key.name for each in page.items])
        if not page.next:
            return pages
        token = page.next


@given(names=st.sets(st.text("abcxyz", min_size=1, max_size=3)), limit=st.integers(0, 5))
def test_the_pages_together_are_the_whole_list(names: set[str], limit: int) -> None:
    pages = names_of_pages(build_storage(*names), limit)

    assert [name for page in pages for name in page] == sorted(names)
    assert all(len(page) <= limit for page in pages) or limit == 0


def test_a_page_says_how_many_come_after() -> None:
    storage = build_storage("a", "b", "c")

    first = read_page(storage, "configmaps", EVERYTHING, limit=1)
    last = read_page(storage, "configmaps", EVERYTHING, limit=2, token=first.next)

    assert (first.remaining, last.remaining) == (2, None)
    assert last.next == ""


def test_how_many_match_a_selector_later_is_not_told() -> None:
    selection = Selection.parse(RESOURCE, label_selector="!absent")

    assert read_page(build_storage("a", "b"), "configmaps", selection, limit=1).remaining is None


def test_later_pages_show_the_state_of_the_first() -> None:
    storage = build_storage("a", "b", "c")
    first = read_page(storage, "configmaps", EVERYTHING, limit=1)
    storage.store("configmaps", {"metadata": {"namespace": "default", "name": "bb"}})
    storage.remove("configmaps", ObjectKey("default", "c"))

    rest = read_page(storage, "configmaps", EVERYTHING, token=first.next)

    assert [each.key.name for each in rest.items] == ["b", "c"]
    assert rest.revision == first.revision


def test_a_token_of_a_forgotten_state_is_expired() -> None:
    storage = build_storage("a", "b")
    token = read_page(storage, "configmaps", EVERYTHING, limit=1).next
    storage.store("configmaps", {"metadata": {"namespace": "default", "name": "c"}})
    storage.compact()

    with pytest.raises(ExpiredError, match="continue parameter is too old"):
        read_page(storage, "configmaps", EVERYTHING, token=token)


@pytest.mark.parametrize("token", ["?", "abc", base64.b64encode(b'{"v":"meta.k8s.io/v1","rv":1}').decode()])
def test_a_token_of_somebody_else_is_refused(token: str) -> None:
    with pytest.raises(BadRequestError, match="invalid continue token"):
        read_page(build_storage("a"), "configmaps", EVERYTHING, token=token)


def test_a_field_that_the_resource_does_not_offer_is_refused() -> None:
    with pytest.raises(BadRequestError, match=r'"spec\.size" is not a known field selector'):
        Selection.parse(RESOURCE, field_selector="spec.size=1")
