// Which backends exist, and calling one of their named kernels without a graph.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/runtime/backend.h"

namespace tessera {

using BackendFactory = std::function<std::unique_ptr<Backend>()>;

// Adds a backend under its device name; the factory runs at first use. A second registration of a
// name is ignored, so that init() may be called again.
void register_backend(std::string name, BackendFactory factory);

std::vector<std::string> backend_names();

// The backend of `name`, made on first use. Throws when there is none.
Backend& backend(std::string_view name);

// Runs one kernel over buffers, now: for callers that cannot pay for a graph. Compiled kernels are
// not kept; hold the Executable of Backend::compile to call again and again.
void call_kernel(Backend& backend, const KernelCall& call, std::span<const Buffer> operands);

}  // namespace tessera
