"""One run of the bench: the installations to measure, the number of rounds,
and the figures so far.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.process_runner import Command, Sample, run_interleaved, take_medians
from bench.subjects import Installation


@dataclass(frozen=True, slots=True)
class BenchRun:
    """The state that all measurements share. Each puts its figures into `values`,
    by subject and budget.
    """

    installations: Sequence[Installation]
    """codeloop first, then the agent to compare with, if any."""
    rounds: int
    folder: Path
    """A temporary folder; each measurement makes folders of its own below it."""
    values: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])

    @property
    def codeloop(self) -> Installation:
        """The installation of codeloop, for what other agents don't have."""
        return self.installations[0]

    @property
    def scriptable(self) -> list[Installation]:
        """The installations whose model can be a file of answers."""
        return [each for each in self.installations if each.subject.scripted]

    def put(self, installation: Installation, budget: str, value: float | None) -> None:
        """Note a figure; None: it could not be measured."""
        if value is not None:
            self.values[installation.subject.name, budget] = value

    def put_own(self, budget: str, value: float | None) -> None:
        """Note a figure of codeloop."""
        self.put(self.codeloop, budget, value)

    def put_sample(self, installation: Installation, budget: str, sample: Sample) -> None:
        """Note the three figures of a whole process: `budget`, `budget-cpu` and `budget-memory`."""
        self.put(installation, budget, sample.wall)
        self.put(installation, f"{budget}-cpu", sample.cpu)
        self.put(installation, f"{budget}-memory", sample.memory)

    def measure_medians(self, commands: Mapping[str, Command]) -> dict[str, Sample]:
        """Run the commands in turn and return the medians of each, by its name."""
        return {
            name: take_medians(samples)
            for name, samples in run_interleaved(commands, self.rounds).items()
        }
