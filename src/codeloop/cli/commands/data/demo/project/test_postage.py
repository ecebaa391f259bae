"""Tests of postage."""

import unittest

from postage import postage


class PostageTest(unittest.TestCase):
    """The price list, at its bounds and beyond."""

    def test_a_light_parcel(self) -> None:
        """The first rate."""
        assert postage(120) == 3.90

    def test_the_bound_belongs_to_the_cheaper_rate(self) -> None:
        """500 g is the first rate's last gram."""
        assert postage(500) == 3.90

    def test_the_heaviest_parcel(self) -> None:
        """20 kg can still be sent."""
        assert postage(20_000) == 12.90

    def test_express_costs_double(self) -> None:
        """Express doubles the price."""
        assert postage(900, express=True) == 9.80

    def test_too_heavy(self) -> None:
        """Nothing above 20 kg."""
        try:
            postage(20_001)
        except ValueError:
            return
        raise AssertionError("20,001 g were accepted")


if __name__ == "__main__":
    unittest.main()
