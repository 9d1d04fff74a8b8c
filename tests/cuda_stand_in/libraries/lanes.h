// How the stand-in driver runs a kernel: lanes take turns, each until it has to wait for others.
#pragma once

#include <string>
#include <vector>

#include "module.h"

namespace stand_in {

struct Function {
  std::string entry;
  // Of the library of each group of a cluster.
  std::vector<Run> run;
  std::vector<Enter> enter;
  Sizes sizes;
  bool waits;
  size_t shared = 48 << 10;  // that a launch may ask for
};

// The lanes of a group, or of the groups of a cluster that begins with it, at `place`. False where
// they wait for each other for ever.
bool run_groups(const Function& function, void** params, Place place);

}  // namespace stand_in
