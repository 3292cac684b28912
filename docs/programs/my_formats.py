import numpy as np

from rnncli.files.formats.format import Format


def read(path):
    rows = [line.split(",") for line in path.read_text().splitlines()]
    return {
        name: np.array(values, dtype).reshape([int(n) for n in shape.split("x") if n])
        for name, dtype, shape, *values in rows
    }


def write(path, tensors):
    rows = [
        [name, values.dtype, "x".join(map(str, values.shape)), *values.ravel().tolist()]
        for name, values in tensors.items()
    ]
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))


CSV = Format("csv", ("csv",), "a line for each tensor: name, dtype, shape, elements", read, write)
