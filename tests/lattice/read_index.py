#!/usr/bin/env python3
"""A second reader of index files, written from docs/formats/index.md alone.

usage: read_index.py FILE    check FILE and print what lives: id, cell, bytes of the vector (hex)

Bytes of a vector are in the order they have in a block; blocks whose layout the file does not tell
are taken to hold their vectors one after the other. data/version1.txt is what it prints of
data/version1.tsr, and so on to version3; the tests compare them with what the library reads.
"""
import struct
import sys

TABLE = []
for value in range(256):
    for _ in range(8):
        value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    TABLE.append(value)


def crc(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = TABLE[(value ^ byte) & 255] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def unpack_ids(data, count):
    if count == 0:
        return []
    first, bits = struct.unpack_from("<qB", data)
    low_bytes = (count * bits + 7) // 8
    low = int.from_bytes(data[9:9 + low_bytes], "little")
    high = int.from_bytes(data[9 + low_bytes:], "little")
    ids = []
    for bit in range(8 * (len(data) - 9 - low_bytes)):
        if high >> bit & 1:
            i = len(ids)
            ids.append(first + ((bit - i) << bits | low >> (i * bits) & ((1 << bits) - 1)))
    assert len(ids) == count and ids == sorted(set(ids))
    return ids


def row_places(begin, end, slot):
    size = (end - begin) // 32
    return list(range(begin + slot * size, begin + (slot + 1) * size))


def register_places(end, slot):
    half = (end - 128) // 2
    registers = range(slot // 16 * half + slot % 16 * 4, (slot // 16 + 1) * half, 64)
    pairs = (end - 128 + 2 * slot, end - 64 + 2 * slot)
    return [at + i for at in registers for i in range(4)] + [at + i for at in pairs for i in (0, 1)]


def places_of(layout, block_bytes, slot):
    """Where the bytes of a slot are in a block, ascending."""
    if layout <= 1:
        return row_places(0, block_bytes, slot)
    if layout == 2:
        return register_places(block_bytes, slot)
    hot = layout - 3
    assert hot >= 128 and hot % 128 == 0
    return register_places(hot, slot) + row_places(hot, block_bytes, slot)


class Index:
    def __init__(self, data):
        self.data = data
        self.read_head()
        self.live = {}
        for vectors, dead in self.segments(self.read_record()):
            for id in dead:
                self.live.pop(id, None)
            assert not set(vectors) & set(self.live)
            self.live.update(vectors)

    def get(self, form, at):
        return struct.unpack_from("<" + form, self.data, at)

    def read_head(self):
        assert self.data[:8] == b"TESSIDX\n" and crc(self.data[:60]) == self.get("I", 60)[0]
        version, self.dim, self.cells, self.metric = self.get("4I", 8)
        self.block_bytes, _ = self.get("2q", 24)
        rows, table_sum = self.get("2I", 40)
        self.tail, half = self.get("2I", 48)
        assert version == 3 or (version == 2 and self.tail <= 2) or (
            version, self.tail, half) == (1, 0, 0)
        assert half in (0, 1)
        self.places = [places_of(self.tail, self.block_bytes, slot) for slot in range(32)]
        assert crc(self.data[2560:2560 + 48 * rows]) == table_sum
        self.sections = {}
        for row in range(2560, 2560 + 48 * rows, 48):
            at, size, total = self.get("2qI", row + 24)
            section = self.data[at:at + size]
            assert at % 64 == 0 and crc(section) == total
            self.sections[self.data[row:row + 24].rstrip(b"\0").decode()] = section
        assert len(self.sections["anchors"]) == (2 if half else 4) * self.dim * self.cells

    def read_record(self):
        records = []
        for at in (512, 1024, 1536, 2048):
            if crc(self.data[at:at + 60]) == self.get("I", at + 60)[0]:
                assert self.data[at:at + 8] == b"TESSCMT\n"
                records.append(self.get("Qqq2I", at + 8))
        return max(records)

    def segments(self, record):
        """(vectors by id, deleted ids) of each segment, oldest first."""
        _, length, footer, count, total = record
        assert length <= len(self.data)
        found = []
        while footer:
            number, previous, previous_total, segment = self.read_segment(footer, total)
            assert number == count - 1 - len(found)
            found.append(segment)
            footer, total = previous, previous_total
        return reversed(found)

    def read_segment(self, footer, total):
        data = self.data
        assert data[footer:footer + 8] == b"TESSSEG\n"
        assert crc(data[footer:footer + 108]) == self.get("I", footer + 108)[0] == total
        _, dead_at, dead_bytes, dead, rows_at, rows, count, lowest, highest, previous = self.get(
            "10q", footer + 8)
        previous_total, number, dead_total, rows_total = self.get("4I", footer + 88)
        assert rows_at + 40 * rows == footer and crc(data[rows_at:footer]) == rows_total
        packed = data[dead_at:dead_at + dead_bytes]
        assert crc(packed) == dead_total
        vectors = {}
        for row in range(rows_at, footer, 40):
            vectors.update(self.read_list(row))
        assert len(vectors) == count
        assert not vectors or (min(vectors), max(vectors)) == (lowest, highest)
        return number, previous, previous_total, (vectors, unpack_ids(packed, dead))

    def read_list(self, row):
        cell, count, at, ids_at, id_bytes, blocks_total, ids_total = self.get("2I3q2I", row)
        size = (count + 31) // 32 * self.block_bytes
        if self.tail != 0:
            size = count // 32 * self.block_bytes + count % 32 * (self.block_bytes // 32)
        stored = self.data[at:at + size]
        assert at % 64 == 0 and crc(stored) == blocks_total
        packed = self.data[ids_at:ids_at + id_bytes]
        assert crc(packed) == ids_total
        for i, id in enumerate(unpack_ids(packed, count)):
            block = self.block(stored, count, i // 32)
            yield id, (cell, bytes(block[place] for place in self.places[i % 32]).hex())

    def block(self, stored, count, number):
        """A block of a list by place; only the slots with vectors where not all of it was kept."""
        begin, vectors = number * self.block_bytes, min(32, count - 32 * number)
        if self.tail == 0 or vectors == 32:
            return stored[begin:begin + self.block_bytes]
        kept = sorted(place for slot in range(vectors) for place in self.places[slot])
        return dict(zip(kept, stored[begin:], strict=True))


def main():
    with open(sys.argv[1], "rb") as file:
        index = Index(file.read())
    for id, (cell, vector) in sorted(index.live.items()):
        print(id, cell, vector)


if __name__ == "__main__":
    main()
