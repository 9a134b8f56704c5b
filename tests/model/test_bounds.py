from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from model import bounds


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (bounds.threads, "100000", "100000 is out of bounds: it must be from 0 to 512"),
        (bounds.threads, "-1", "-1 is out of bounds: it must be from 0 to 512"),
        (bounds.port, "99999", "99999 is out of bounds: it must be from 0 to 65535"),
        (bounds.count, "0", "0 is out of bounds: it must be at least 1"),
        (bounds.count, "many", "'many' is not a whole number"),
        (bounds.real(0, 1), "7", "7.0 is out of bounds: it must be from 0 to 1"),
        (bounds.real(0), "nan", "'nan' is not a finite number"),
        (bounds.real(0), "x", "'x' is not a number"),
    ],
)
def test_what_is_out_of_bounds_is_refused_in_words(read, text: str, said: str) -> None:
    with pytest.raises(ArgumentTypeError) as refused:
        read(text)
    assert str(refused.value) == said


def test_what_is_within_bounds_is_read() -> None:
    assert [bounds.threads("0"), bounds.port("65535"), bounds.real(0, 1)("0.5")] == [0, 65535, 0.5]
