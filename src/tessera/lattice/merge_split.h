// Changes the number of anchors: those too close to each other become one, cells that hold too much
// become two.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/lattice/steps.h"

namespace tessera::lattice {

struct MergeSplitRule {
  double closeness;      // pairs nearer than this fraction of the mean spacing are merged
  double variance;       // cells of a larger mean squared distance are split
  int64_t fewest, most;  // anchors
};

struct MergeSplitResult {
  int64_t merged, split;
};

// What belongs to an anchor: its coordinates and its velocity, (m, dim) each.
struct MovingAnchors {
  std::vector<float> data, velocity;
};

// Spacing is the mean over the anchors of the distance to the nearest other one. Pairs are merged
// in the order of their distance, each anchor at most once, into their mean weighted by the sizes
// of their cells. Then cells of more than 2 n / m points or above the variance are split, those
// with the largest sum of squared distances first, as long as there are fewer than `most` anchors;
// and further ones while there are fewer than `fewest`, which is how a merged slot is seeded again.
// A cell is split along its direction of largest variance s², by 0.8 s to both sides.
//
// `assignment` must be that of the anchors as they are; its cells are renumbered with them.
MergeSplitResult merge_and_split(const Points& points, const CellOrder& order,
                                 const MergeSplitRule& rule, Assignment& assignment,
                                 MovingAnchors& anchors);

}  // namespace tessera::lattice
