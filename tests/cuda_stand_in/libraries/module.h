// What the stand-in compiler leaves for the stand-in driver in a compiled kernel's library: for
// each entry `k`, a function k__run and a table k__sizes; whether lanes must take turns; how many
// groups a cluster has; and `group_bases`, kMostGroups places for where that table itself stands in
// the library of each group of a cluster, of which there are copies then.
#pragma once

#include <cstddef>

namespace stand_in {

struct Place {
  unsigned lane, group, lanes, groups;
};

// What a lane waits for: all others of its group, of its warp, or until all of its cluster have
// been at `arrive`, which does not wait.
enum class Wait : int { no, group, warp, cluster, arrive };

inline constexpr unsigned kMostGroups = 8;  // of a cluster

// Runs one lane; `wait` is called at barriers and around shuffles.
using Run = void (*)(void** params, Place place, void (*wait)(Wait));
// Makes `place` that of the code that runs next.
using Enter = void (*)(Place place);
// The bytes of each parameter, 0 behind the last.
using Sizes = const size_t* (*)();

inline constexpr char kMagic[8] = {'S', 'T', 'A', 'N', 'D', '-', 'I', 'N'};

}  // namespace stand_in
