B
cell_stateJ=;· ÖœV§µ?³R^ßÚ