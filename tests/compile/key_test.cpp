#include <gtest/gtest.h>

#include "compile/function_builder.h"

namespace tessera {
namespace {

using namespace graph;

std::string key_of(double literal, Shape shape, uint64_t region, bool swapped = false) {
  const Value x = leaf(shape), y = leaf(shape);
  Attrs attrs;
  attrs.bits = region;
  const Value in{make_node(Op::region_enter, {x}, attrs), 0};
  const Value z = swapped ? apply(Op::sub, y, in) : apply(Op::sub, in, y);
  return structure_key(function({x, y}, {z * literal}));
}

TEST(StructureKey, ForgetsWhichLeavesAndRegions) {
  EXPECT_EQ(key_of(2, {3, 4}, 1), key_of(2, {3, 4}, 99));
}

TEST(StructureKey, TellsApartWhatDiffers) {
  const std::string key = key_of(2, {3, 4}, 1);
  EXPECT_NE(key, key_of(3, {3, 4}, 1));
  EXPECT_NE(key, key_of(2, {4, 3}, 1));
  EXPECT_NE(key, key_of(2, {3, 4}, 1, true));
  EXPECT_NE(key_of(0.0, {3}, 1), key_of(-0.0, {3}, 1));
  const Value x = leaf({3}), y = leaf({3});
  const Value z = x + y;
  EXPECT_NE(structure_key(function({x, y}, {z})), structure_key(function({x, y}, {z, z})));
  EXPECT_NE(structure_key(function({x, y}, {z})), structure_key(function({x, y}, {}, {{0, z}})));
  EXPECT_NE(structure_key(function({x, y}, {}, {{1, z}})),
            structure_key(function({x, y}, {}, {{0, z}})));
}

}  // namespace
}  // namespace tessera
