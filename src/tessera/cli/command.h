// The subcommands. Each writes its result to `out`, and throws UsageError when it is called in a
// wrong way, Error when it cannot do its work.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace tessera::cli {

using CommandFunction = void(std::span<const std::string> words, std::ostream& out);

CommandFunction explain;

}  // namespace tessera::cli
