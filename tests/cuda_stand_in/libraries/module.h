// What the stand-in compiler leaves for the stand-in driver in a compiled kernel's library: for
// each entry `k`, a function k__run and a table k__sizes; and whether lanes must take turns.
#pragma once

#include <cstddef>

namespace stand_in {

struct Place {
  unsigned lane, group, lanes, groups;
};

// What a lane waits for: all others of its group, or of its warp.
enum class Wait : int { no, group, warp };

// Runs one lane; `wait` is called at barriers and around shuffles.
using Run = void (*)(void** params, Place place, void (*wait)(Wait));
// Makes `place` that of the code that runs next.
using Enter = void (*)(Place place);
// The bytes of each parameter, 0 behind the last.
using Sizes = const size_t* (*)();

inline constexpr char kMagic[8] = {'S', 'T', 'A', 'N', 'D', '-', 'I', 'N'};

}  // namespace stand_in
