"""What the measurements share: the places, how often to run, and the figures that come of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.measure import Command, Sample, interleaved, median
from bench.subject import Place


@dataclass(frozen=True, slots=True)
class Bench:
    """What the measurements share; they put `values[subject, budget]` in."""

    places: Sequence[Place]
    rounds: int
    folder: Path
    values: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])

    def put(self, place: Place, budget: str, value: float | None) -> None:
        """Note a figure; None is one that could not be had."""
        if value is not None:
            self.values[place.subject.name, budget] = value

    def put_all(self, place: Place, budget: str, sample: Sample) -> None:
        """Note the three figures of a whole process."""
        self.put(place, budget, sample.wall)
        self.put(place, f"{budget}-cpu", sample.cpu)
        self.put(place, f"{budget}-memory", sample.memory)

    def medians(self, commands: Mapping[str, Command]) -> dict[str, Sample]:
        """Run the commands in turn and return the median of each."""
        return {name: median(samples) for name, samples in interleaved(commands, self.rounds).items()}
