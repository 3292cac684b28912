"""Qualcomm's execution provider of ONNX Runtime, on its emulator of an NPU or on a device.

https://onnxruntime.ai/docs/execution-providers/QNN-ExecutionProvider.html
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import onnxruntime
import onnxruntime_qnn

from rnncli.subjects.runtime import Refusal, known_settings
from rnncli.subjects.runtimes.onnx_runtime import EP, OnnxRuntime

if TYPE_CHECKING:
    from collections.abc import Mapping

QNN = "QNNExecutionProvider"
# Of the provider, as its documentation has them; the emulator is that of a Snapdragon 8 Gen 3.
DEFAULTS = {"backend": "Htp", "htp_arch": "75", "soc_model": "57"}


class OnnxRuntimeQnn(OnnxRuntime):
    """Runs nodes on QNN alone: what it leaves to the CPU is refused.

    Settings are those of ONNX Runtime but for ``ep``, and ``backend``, ``htp_arch`` and
    ``soc_model`` of the provider.
    """

    is_built_in = False

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        own = {name: settings.get(name, value) for name, value in DEFAULTS.items()}
        others = {name: value for name, value in settings.items() if name not in own}
        known_settings({EP} & others.keys(), DEFAULTS)  # which is this one's own
        super().__init__({**others, EP: QNN}, threads)
        self._settings |= own
        onnxruntime.register_execution_provider_library(QNN, onnxruntime_qnn.get_library_path())
        devices = [each for each in onnxruntime.get_ep_devices() if each.ep_name == QNN]
        if not devices:
            raise Refusal(f"{QNN} finds no device")
        folder = Path(onnxruntime_qnn.get_library_path()).parent
        options = {
            "backend_path": str(folder / f"libQnn{own['backend']}.so"),
            **{name: own[name] for name in ("htp_arch", "soc_model")},
        }
        self._options.add_provider_for_devices(devices[:1], options)

    def describe(self) -> Mapping[str, str]:
        """Return the versions of both packages, and settings."""
        return {**super().describe(), "onnxruntime-qnn": onnxruntime_qnn.__version__}
