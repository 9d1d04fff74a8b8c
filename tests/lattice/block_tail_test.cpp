#include "tessera/lattice/block_tail.h"

#include <gtest/gtest.h>

#include <vector>

#include "tessera/lattice/block_packer.h"
#include "tessera/lattice/code_layout.h"

namespace tessera::lattice {
namespace {

using Bytes = std::vector<std::byte>;

// What is kept of a block gives the block back, and holds the bytes of no other slot: with those
// filled it is the same.
void expect_kept(TailLayout layout, const Bytes& block, const Bytes& filled, int64_t count) {
  const auto size = int64_t(block.size());
  Bytes stored(size_t(stored_bytes(layout, count, size))), again = stored;
  ASSERT_EQ(int64_t(stored.size()), count * (size / kBlockVectors));
  shorten_block(layout, block.data(), size, count, stored.data());
  shorten_block(layout, filled.data(), size, count, again.data());
  EXPECT_EQ(stored, again) << count;
  Bytes back(block.size());
  restore_block(layout, stored.data(), size, count, back.data());
  EXPECT_EQ(back, block) << count;
}

TEST(BlockTail, KeepsTheVectorsOfCodesAlone) {
  for (const auto& [bits, planes] :
       {std::pair{1, false}, {3, false}, {4, false}, {8, false}, {2, true}, {4, true}, {8, true}}) {
    for (const int32_t dim : {4, 100, 128}) {
      CodeSpec spec = rotation_spec(dim, bits, 1, 1);
      spec.planes = planes;
      const TailLayout layout = planes ? planes_layout(hot_bytes(spec)) : TailLayout::registers;
      ASSERT_TRUE(is_layout_of(layout, block_bytes(spec)));
      Bytes filled(size_t(block_bytes(spec)));
      std::vector<uint8_t> codes(size_t(spec.padded_dim));
      const auto pack = [&](Bytes& block, int slot) {
        for (int32_t j = 0; j < dim; ++j)
          codes[size_t(j)] = uint8_t((slot + 1) * (j + 3) % (1 << bits));
        pack_code(spec, block.data(), slot, codes, {1.5f + float(slot), 0.25f, 0.5f});
      };
      for (int slot = 0; slot < kBlock; ++slot) pack(filled, slot);
      Bytes block(filled.size());
      for (int slot = 0; slot + 1 < kBlock; ++slot) {
        pack(block, slot);
        expect_kept(layout, block, filled, slot + 1);
      }
    }
  }
}

TEST(BlockTail, KeepsRows) {
  Bytes filled(96), block(96);
  for (size_t i = 0; i < 96; ++i) filled[i] = std::byte(i + 1);
  for (int64_t count = 1; count < 32; ++count) {
    std::copy_n(filled.begin(), 3 * count, block.begin());
    expect_kept(TailLayout::rows, block, filled, count);
  }
}

TEST(BlockTail, CountsBytes) {
  EXPECT_EQ(stored_bytes(TailLayout::padded, 33, 64), 128);
  EXPECT_EQ(stored_bytes(TailLayout::rows, 33, 64), 66);
  EXPECT_EQ(stored_bytes(TailLayout::registers, 64, 256), 512);
  EXPECT_EQ(whole_blocks(TailLayout::padded, 33), 2);
  EXPECT_EQ(whole_blocks(TailLayout::rows, 33), 1);
  EXPECT_EQ(stored_bytes(TailLayout::registers, 5, 0), 0);
  EXPECT_TRUE(is_layout_of(TailLayout::padded, 7));
  EXPECT_FALSE(is_layout_of(TailLayout::rows, 48));
  EXPECT_FALSE(is_layout_of(TailLayout::registers, 192));
  EXPECT_TRUE(is_layout_of(planes_layout(640), 640 + 32 * 50));
  EXPECT_FALSE(is_layout_of(planes_layout(0), 2240));    // no hot part
  EXPECT_FALSE(is_layout_of(planes_layout(640), 576));   // larger than a block
  EXPECT_FALSE(is_layout_of(planes_layout(704), 2240));  // no pairs of registers
  EXPECT_FALSE(is_layout_of(planes_layout(640), 2241));  // no whole rows
  EXPECT_FALSE(is_layout_of(TailLayout(4), 2240));       // no layout
  EXPECT_FALSE(is_layout_of(TailLayout(64 + 2), 2240));  // one without a hot part
}

}  // namespace
}  // namespace tessera::lattice
