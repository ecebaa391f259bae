"""What it costs to send a parcel."""

RATES = [(500, 3.90), (1_000, 4.90), (5_000, 7.50), (20_000, 12.90)]
"""Upper bound in grams (inclusive) and price."""


def postage(grams: int, *, express: bool = False) -> float:
    """Return the price for a parcel. Raises ValueError when it is too heavy or weighs nothing."""
    if grams <= 0:
        raise ValueError("a parcel weighs something")
    for bound, price in RATES:
        if grams < bound:
            return price * 2 if express else price
    raise ValueError(f"{grams} g is too heavy")
