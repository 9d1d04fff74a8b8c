// tessera selftest: what the device is, and whether it computes what it should.
#pragma once

#include "tessera/base/device.h"
#include "tessera/cli/command.h"
#include "tessera/conformance/check_op.h"

namespace tessera::cli {

struct SelftestOptions {
  Device device;  // where the ops run too, so it must be the default one
  bool quick = false;
  bool json = false;
};

// Writes the result as it comes, or one JSON document at the end. `failed` when any check failed.
Status selftest(const SelftestOptions& options, const Evaluate& evaluate, Console& console);

}  // namespace tessera::cli
