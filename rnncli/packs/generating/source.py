"""What a vector is made from: an entry of a suite, or a node that ran inside a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from rnncli.cases.suite.breakage import Breakage
    from rnncli.numerics import Array, DType
    from rnncli.operators import Node


class Demanding(Protocol):
    """One operator, of which an implementation must know something."""

    @property
    def node(self) -> Node:
        """The operator with its attributes, the outputs asked for and every reading."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """seq_length, batch_size, input_size and hidden_size."""

    @property
    def dtype(self) -> DType:
        """Of every floating-point tensor."""


class Question(Demanding, Protocol):
    """One operator with all it is fed; `rnncli.cases.case.Case` is one."""

    @property
    def summary(self) -> str:
        """One sentence, or ""."""

    @property
    def seed(self) -> int:
        """Of random inputs; 0 where there are none."""

    def stacked(self, names: Sequence[str], call: int = 0) -> dict[str, Array]:
        """Return the present inputs by name, [names, ...]: of cases alike but for their names."""


class Origin(Protocol):
    """A case of a pack to be; `rnncli.cases.suite.suite.Entry` is one."""

    @property
    def id(self) -> str:
        """Unique in the pack."""

    @property
    def weights(self) -> str:
        """Where W, R, B and P stand in the model: inputs or initializers."""

    @property
    def golden(self) -> str:
        """How expected values are made: a row of `goldens.KINDS`."""

    @property
    def profile(self) -> str:
        """The name of the profile of its tolerances."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Why it is there: keys of the pack's notes."""

    @property
    def breakage(self) -> Breakage | None:
        """What makes it invalid, where it must be refused."""

    @property
    def calls(self) -> int:
        """How many data sets it has, for calls of one session."""

    @property
    def horizon(self) -> int | str | None:
        """For how many steps an input must be visible, or "all"; None if nothing is claimed."""

    @property
    def empty_names(self) -> bool:
        """Whether the node writes "" for inputs that are left out at the end, too."""

    @property
    def structure(self) -> Hashable:
        """What is the same for cases that are alike but for their ids, labels and flags."""

    def case(self) -> Question:
        """Return what is asked.

        Raises:
            InvalidRequest: there is something wrong with it.
        """
