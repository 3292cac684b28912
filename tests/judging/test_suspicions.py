"""Suspicions: each is told from all others by the steps of an implementation that has it."""

from dataclasses import replace

import numpy as np
import pytest
from recurrences import recurrence_of

from rnncli.judging.error_model.trajectory import Trajectory
from rnncli.judging.one_step import predicted
from rnncli.judging.residual import ResidualCheck
from rnncli.judging.shortened import AFTER, BEFORE, window
from rnncli.judging.suspicions import suspicions
from rnncli.profiles import PROFILES

STANDARD = PROFILES["standard"]
RECURRENCES = {
    "RNN": {"clip": 0.9},
    "RNN-parameters": {"activations": ["ScaledTanh"], "activation_alpha": [0.7]},
    "GRU": {"clip": 1.5},
    "GRU-after": {"linear_before_reset": 1},
    "LSTM": {"peepholes": True, "clip": 1.5},
    "LSTM-coupled": {"input_forget": 1},
    "GRU-threshold": {"activations": ["ThresholdedRelu", "Affine"], "activation_alpha": [0.4]},
    "LSTM-hard": {"activations": ["HardSigmoid", "Softsign", "Elu"], "activation_alpha": [0.3]},
}


def recurrence(case):
    """Every input given, and well conditioned."""
    return recurrence_of(case.partition("-")[0], T=6, scale=0.7, seed=5, **RECURRENCES[case])


def followed(path):
    """Walk on from the initial states as a path's recurrence has it: Y [T, 1, N, H] in float32."""
    H = path.H.copy()
    for t in range(path.sizes[1]):
        H[:, t + 1] = predicted(replace(path, H=H))[:, t].astype(np.float32)
    return H[0, 1:, None].astype(np.float32)


def path_of(case):
    """States that are all zero, but the initial ones; they are walked anew."""
    found = recurrence(case)
    T, N, _ = found.X.shape
    Y = np.zeros((T, 1, N, found.W.shape[2]), np.float32)
    return Trajectory.of(found, Y, hostile=False)


@pytest.mark.parametrize("case", RECURRENCES)
def test_every_suspicion_is_recognised(case):
    """An implementation that has it is found to have it, or one that computes the same."""
    right = followed(path_of(case))
    tried = 0
    for suspicion in suspicions(path_of(case)):
        Y = followed(suspicion.path)
        check = ResidualCheck.of(recurrence(case), Y, STANDARD)
        found = check.localisation(Y != right)
        if found is None or found.steps == 0:
            assert np.allclose(Y, right, atol=1e-6), str(suspicion)  # it changes nothing here
            continue
        tried += 1
        assert f"; fits {suspicion.subject}" in found.sentence, str(suspicion)
        assert found.gate == suspicion.gates
    assert tried > 8


@pytest.mark.parametrize("case", RECURRENCES)
def test_suspicions_differ_in_their_words(case):
    """No two say the same."""
    words = [str(suspicion) for suspicion in suspicions(path_of(case))]

    assert len(set(words)) == len(words)


@pytest.mark.parametrize("case", RECURRENCES)
def test_suspicions_leave_the_path_alone(case):
    """They are tried one after another on the same tensors."""
    path = path_of(case)
    tensors = {n: getattr(path, n).copy() for n in ("X", "H", "W", "R", "Wb", "Rb", "C0")}

    list(suspicions(path))

    for name, values in tensors.items():
        assert np.array_equal(getattr(path, name), values)


@pytest.mark.parametrize("kind", ["RNN", "LSTM"])
def test_a_window_gives_the_steps_of_the_whole(kind):
    """Whatever its place; an LSTM's C enters it as it was."""
    found = recurrence_of(kind, T=30, N=7)
    Y = np.random.default_rng(0).normal(0, 0.3, (30, 1, 7, 5)).astype(np.float32)
    path = Trajectory.of(found, Y, hostile=False)
    whole = predicted(path)
    for step, batch in ((0, 0), (3, 6), (17, 2), (29, 1)):
        part = window(path, step, batch)

        assert np.allclose(predicted(part.path), whole[:, part.steps, part.batch], rtol=1e-12)
        assert part.path.sizes[1] <= BEFORE + AFTER
        assert part.batch.start == batch
        assert part.steps.start <= step < part.steps.stop
