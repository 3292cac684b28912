"""The hosts: what can evaluate the nodes of a model that are not recurrent."""

from __future__ import annotations

from importlib.util import find_spec

from rnncli.errors import InvalidRequest, Unsupported, did_you_mean

ONNX = "onnx"
HOSTS = (ONNX, "onnxruntime")
"""onnx's reference, with our host operators; ONNX Runtime, which is imported if it is asked for."""


def check_host(name: str) -> None:
    """Raise if there is no such host.

    Raises:
        InvalidRequest: the name is unknown.
        Unsupported: it is not installed.
    """
    if name not in HOSTS:
        near = did_you_mean(name, HOSTS)
        raise InvalidRequest(f"unknown host '{name}'{near} ({', '.join(HOSTS)})")
    if not find_spec(name):
        raise Unsupported(
            f"host '{name}' is not installed; install it with: pip install 'rnncli[runtimes]'"
        )
