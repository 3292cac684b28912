"""Sources of vectors: entries of a suite, or nodes that ran inside a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from rnncli.cases.suite.breakage import Breakage
    from rnncli.numerics import Array, DType
    from rnncli.operators import Node


class OperatorUse(Protocol):
    """One use of an operator, with the features that an implementation must support."""

    @property
    def node(self) -> Node:
        """The operator with its attributes, requested outputs and every reading."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """seq_length, batch_size, input_size and hidden_size."""

    @property
    def dtype(self) -> DType:
        """The dtype of every floating-point tensor."""


class CaseContent(OperatorUse, Protocol):
    """One use of an operator with its inputs; `rnncli.cases.case.Case` is one."""

    @property
    def summary(self) -> str:
        """One sentence, or ""."""

    @property
    def seed(self) -> int:
        """The seed of random inputs; 0 if there are none."""

    def stacked(self, names: Sequence[str], call: int = 0) -> dict[str, Array]:
        """Return the present inputs by name, [names, ...], for cases that differ only in name."""


class CaseSource(Protocol):
    """A case to be made; `rnncli.cases.suite.suite.Entry` is one."""

    @property
    def id(self) -> str:
        """The case's id, unique in the pack."""

    @property
    def weights(self) -> str:
        """Where the model has W, R, B and P: inputs or initializers."""

    @property
    def golden(self) -> str:
        """How expected values are computed: a row of `goldens.KINDS`."""

    @property
    def profile(self) -> str:
        """The name of the profile of its tolerances."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Why the case exists: keys of the pack's notes."""

    @property
    def breakage(self) -> Breakage | None:
        """The change that makes it invalid, if it must be refused."""

    @property
    def calls(self) -> int:
        """The number of its data sets, which are calls of one session."""

    @property
    def horizon(self) -> int | str | None:
        """The steps for which an input must be visible, or "all"; None if none are claimed."""

    @property
    def empty_names(self) -> bool:
        """Whether the node writes "" for absent inputs at the end as well."""

    @property
    def steps(self) -> bool:
        """Whether the signals of every step are stored."""

    @property
    def structure(self) -> Hashable:
        """The key that cases share if they differ only in ids, labels and flags."""

    def case(self) -> CaseContent:
        """Return the operator and its inputs.

        Raises:
            InvalidRequest: the case is invalid.
        """
