from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from konverge._internal.kube.quantities import canonicalize_quantity


# The results of kube-apiserver 1.36 for an emptyDir's sizeLimit.
@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("0", "0"),
        ("0.0Gi", "0"),
        ("1000m", "1"),
        ("100000m", "100"),
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        (".5", "500m"),
        ("2.50", "2500m"),
        ("1000", "1k"),
        ("1000k", "1M"),
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        ("1.5e3", "1500"),
        ("15e-1", "1500e-3"),
        ("1E", "1E"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("5.0Gi", "5Gi"),
        ("8Ei", "9223372036854775807"),
        ("0.0000000001", "1n"),
        ("12e-7", "1200e-9"),
        ("1000E", "1"),
    ],
)
def test_quantity_is_spelled_as_the_server_stores_it(written: str, stored: str) -> None:
    assert canonicalize_quantity(written) == stored


@pytest.mark.parametrize("written", ["1.896M", "+5", "1.", "3e0", "37.570611e6", "007m", "1e21", "10E"])
def test_text_that_looks_canonical_is_kept(written: str) -> None:
    assert canonicalize_quantity(written) == written


@pytest.mark.parametrize(
    ("written", "stored"),
    [("1u", "1m"), ("0.242n", "1m"), ("37.33m", "38m"), ("0.32976Gi", "354077103883m"), ("1000m", "1")],
)
def test_resource_lists_round_up_to_thousandths(written: str, stored: str) -> None:
    assert canonicalize_quantity(written, milli=True) == stored


@pytest.mark.parametrize(("written", "stored"), [(1, "1"), (0.5, "500m"), (2000, "2k"), (2.0, "2"), (0, "0")])
def test_bare_numbers_are_quantities(written: float, stored: str) -> None:
    assert canonicalize_quantity(written) == stored


@pytest.mark.parametrize("written", ["", " ", "m", "1 Gi", "1gi", "1Kii", "--1", "1e", "0x10", "½", "1" * 300, "NaN"])
def test_anything_else_is_no_quantity(written: str) -> None:
    with pytest.raises(ValueError, match=r"expected a quantity such as"):
        canonicalize_quantity(written)


def test_booleans_are_no_quantities() -> None:
    with pytest.raises(ValueError, match=r"found a boolean"):
        canonicalize_quantity(True)


UNITS = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": 1} | {
    letter: factor**power
    for factor, letters in ((1000, "k M G T P E"), (1024, "Ki Mi Gi Ti Pi Ei"))
    for power, letter in enumerate(letters.split(), start=1)
}


def number(quantity: str) -> Fraction:
    """Compute the number of a quantity by the table of suffixes."""
    found = re.fullmatch(r"([\d.]+)(?:[eE](-?\d+)|(\D*))", quantity)
    assert found is not None
    figures, power, unit = found.groups()
    return Fraction(figures) * (UNITS[unit] if power is None else Fraction(10) ** int(power))


# Less than 10^21: there the server runs out of suffixes and stores 1 (and so do we).
_quantities = st.builds(
    lambda whole, fraction, suffix: f"{whole}{fraction}{suffix}",
    st.integers(0, 10**11),
    st.sampled_from(["", ".5", ".125", ".001"]),
    st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "e-3", "E2"]),
)


@pytest.mark.parametrize(("written", "stored"), [("1078.125Ki", "1104k"), ("1.953125Ki", "2k"), ("1.5Ki", "1536")])
def test_a_binary_number_without_a_binary_suffix_is_stored_as_a_decimal_one(written: str, stored: str) -> None:
    assert canonicalize_quantity(written) == stored


@given(_quantities)
def test_the_stored_spelling_is_stored_as_it_is(written: str) -> None:
    stored = canonicalize_quantity(written)
    assert canonicalize_quantity(stored) == stored


@given(_quantities)
def test_the_stored_spelling_means_the_same_number(written: str) -> None:
    assume(number(written) < 2**63)  # the server limits binary quantities to this value
    assert number(written) <= number(canonicalize_quantity(written)) <= number(written) + Fraction(1, 10**9)
