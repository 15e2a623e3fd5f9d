"""Trains several runs in one program, stacked by vmap. Each of them has its own folder, as if it had been trained alone.

A member does everything but its updates by itself, through its `course`: it reads its batches, evaluates, saves, and ends. It waits
where the next update is due. One call of the program does the update of all members whose batches have the same shape, beginning with
those that are furthest behind. The others, and those that have ended, stay as they are in this call.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from one_layer.models.sharding import Devices
from one_layer.platform import inside
from one_layer.runs.settings import RunConfig
from one_layer.system.errors import UserError, of_a_file
from one_layer.tasks.model import prepared
from one_layer.tasks.protocol import Between, Validator, Variables
from one_layer.training import programs, results
from one_layer.training.beginning import opened
from one_layer.training.course import Request, course
from one_layer.training.interruption import Interrupted, Interruption
from one_layer.training.meter import Clock
from one_layer.training.stacked import Stack
from one_layer.training.trainer import Ready, Trainer

log = logging.getLogger(__name__)

SPEAKER: ContextVar[str] = ContextVar("the member that works now", default="")


@dataclass(frozen=True)
class Entry:
    """A run that shall be trained: its name, its config, its folder, and the overrides for result.json."""

    name: str
    run: RunConfig
    workdir: Path
    overrides: list[str]


def train_together(entries: Sequence[Entry], interruption: Interruption) -> dict[str, str]:
    """Trains the runs, or continues them, and writes their results.

    A run that fails stops no other one. Returns: what went wrong, by the name of the run. Raises: UserError, before anything is compiled,
    for runs that one program cannot train; Interrupted if a signal asked to stop, after all runs were saved.
    """
    for entry in entries:
        programs.check(entry.run.raw)
        Devices.arranged(**vars(entry.run.mesh))  # on these it is scored at its end
    if names := programs.apart([entry.run.raw for entry in entries]):
        raise UserError(
            f"these runs need different programs, because they differ in {', '.join(names)}; one program trains runs that differ in "
            f"{', '.join(programs.INPUTS)} and in how their weights are drawn"
        )
    return _Population(entries, interruption).train()


def _in_stack(name: str) -> Any:
    def read(member: Member) -> Any:
        return member.own[name] if member.stack is None else member.stack.of(name, member.place)

    def write(member: Member, value: Any) -> None:
        assert member.stack is None, "only the program changes what lies in the stack"
        member.own[name] = value

    return property(read, write)


class Member(Trainer):
    """A run of a population. Once it is in the stack, its arrays are copied from there whenever they are read."""

    stack: Stack | None = None
    place: int
    params = _in_stack("params")
    moments = _in_stack("moments")
    fixed = _in_stack("fixed")

    def __init__(self, ready: Ready, validators: list[Validator]) -> None:
        """`validators`: an empty list that all members of the population share."""
        self.own: dict[str, Any] = {}
        self._validators = validators
        super().__init__(ready)

    def leave_device(self) -> None:
        """Moves the arrays to the host, so that the device does not hold them twice while they are stacked."""
        self.own = jax.device_get(self.own)

    def enter(self, stack: Stack, place: int) -> None:
        """Leaves the arrays to the stack."""
        self.stack, self.place = stack, place
        self.own.clear()

    def new_validator(self) -> Validator:
        """The first member's serves all, so that it is compiled once. It is given W ⊙ M, because the members' masks differ."""
        if not self._validators:
            self._validators.append(super().new_validator())
        (validator,) = self._validators

        def measured(params: Variables, fixed: dict[str, Variables], between: Between) -> dict[str, float]:
            variables = prepared(self.model, {"params": params, **fixed})
            return validator(variables.pop("params"), variables, between)

        return measured


class _Population:
    def __init__(self, entries: Sequence[Entry], interruption: Interruption) -> None:
        self._interruption, self._size = interruption, len(entries)
        self._clock = Clock()  # so that what one member does beside its updates is not in the seconds of the others
        self._members: dict[str, Member] = {}
        self._validators: list[Validator] = []
        self._courses = {entry.name: self._course(entry) for entry in entries}
        self._waiting: dict[str, Request] = {}  # the updates that are due, by the member's name
        self._failed: dict[str, str] = {}
        self._finished: set[str] = set()
        self._interrupted: Interrupted | None = None

    def train(self) -> dict[str, str]:
        with ExitStack() as open_courses:  # closed here and not when Python ends: there, Orbax would wait for ever
            for each in self._courses.values():
                open_courses.callback(each.close)
            return self._train()

    def _train(self) -> dict[str, str]:
        with self._clock.stopped():
            for name in self._courses:
                if not self._interruption.signal:
                    self._go_on(name)
                if name in self._waiting:
                    self._members[name].leave_device()
        if self._waiting and not self._interruption.signal:  # else nothing was compiled or trained yet
            members = [self._members[name] for name in self._waiting]
            stack = Stack(members)
            for place, member in enumerate(members):
                member.enter(stack, place)
            while self._waiting:
                self._update(stack)
        if self._interrupted is not None:
            raise self._interrupted
        ended = len(self._finished) + len(self._failed)
        if self._interruption.signal and ended < len(self._courses):  # not all were begun
            raise Interrupted(self._interruption.signal, 0)
        return self._failed

    def _course(self, entry: Entry) -> Generator[Request]:
        """What `one_layer.training.train.train` does with a run; but others do its updates."""
        known = next((member.corpus for member in self._members.values()), None)
        with opened(entry.run, entry.workdir, Devices.holding(()), self._size, known) as ready:
            member = Member(ready, validators=self._validators)
            member.clock, member.members = self._clock, self._size
            self._check_text(entry.name, member)
            self._members[entry.name] = member
            try:
                member.restore()
                yield from course(member, self._interruption)
                member.stop_if_asked(self._interruption)
            finally:
                with self._clock.stopped():  # closing waits until all is written, which is no time of the others
                    member.checkpoints.close()
            with self._clock.stopped():
                results.write(member, entry.overrides)

    def _check_text(self, name: str, member: Member) -> None:
        """Raises: UserError if the member's text is not that of the first one, by which all of them are validated."""
        first = next(iter(self._members.values()), member)
        if first.corpus.fingerprints() != member.corpus.fingerprints():
            raise UserError(f"the text of {name} is not that of the other runs; train it without --vmap")

    def _go_on(self, name: str) -> None:
        """Lets a member work until its next update is due, or until it ends."""
        with inside(SPEAKER, name):
            try:
                self._waiting[name] = next(self._courses[name])
            except StopIteration:
                self._finished.add(name)
            except Interrupted as interrupted:
                self._interrupted = interrupted
            except (UserError, OSError) as error:
                mistake = of_a_file(error) if isinstance(error, OSError) else error
                if mistake is None:
                    raise
                self._failed[name] = str(mistake)
                log.error("error: %s", mistake)

    def _update(self, stack: Stack) -> None:
        """Does the update of the members that are furthest behind, and of all others whose batches have the same shape."""
        batch, _ = min(self._waiting.values(), key=lambda request: request[1])
        chosen = [name for name, (other, _) in self._waiting.items() if _shapes(other) == _shapes(batch)]
        requests = {self._members[name].place: self._waiting.pop(name) for name in chosen}
        reports = stack.update(requests, self._clock)
        for name in chosen:
            member = self._members[name]
            member.sums = reports[member.place]
            self._go_on(name)


def _shapes(batch: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in batch.items()}
