"""Archives that inflate to much more than they take: one compressed block, many times."""

import gzip
import struct
import zlib

MIB = 1 << 20
PART = 16 * MIB  # of a gzip file


def deflated_zeros(size):
    """Return so many zeros, whole mebibytes, compressed without a header."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)  # refers to no other
    return block * (size // MIB) + packer.flush()


def zip_of_zeros(name, size, head=b""):
    """Return an archive of one member, a head and so many zeros, genuine in every respect."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH) + deflated_zeros(size)
    crc = zlib.crc32(head)
    for _ in range(size // MIB):
        crc = zlib.crc32(bytes(MIB), crc)
    return zip_of_body(name, body, crc, len(head) + size)


def zip_of_body(name, body, crc, size, copies=1):
    """Return an archive whose one compressed body is the member of that name, or of many."""
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 8, 0, 33, crc, len(body), size, len(name), 0)
    entries = b"".join(
        struct.pack(
            "<4s6H3I5H2I",
            *(b"PK\1\2", 20, 20, 0, 8, 0, 33, crc, len(body), size),
            *(len(entry), 0, 0, 0, 0, 0, 0),
        )
        + entry
        for entry in ([name] if copies == 1 else [b"%04d.npy" % i for i in range(copies)])
    )
    whole = local + name + body
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, copies, copies, len(entries), len(whole), 0)
    return whole + entries + end


def gzip_of_zeros(size, head):
    """Return a head and at least so many zeros, compressed; gzip reads parts as one whole."""
    return gzip.compress(head) + gzip.compress(bytes(PART), 1) * (size // PART + 1)
