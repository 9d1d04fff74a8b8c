// The tokens that `tessera train` learns from.
#pragma once

#include <filesystem>
#include <optional>

#include "tessera/cli/train_config.h"
#include "tessera/data/token_data.h"
#include "tessera/data/tokenizer.h"

namespace tessera::cli {

struct TrainData {
  TokenData training, held_out;
  std::optional<Tokenizer> tokenizer;  // none: token files without one
  int64_t vocabulary = 0;
  std::optional<int64_t> end_token;
};

// Token files are used as they are. Text is turned into `run`/tokens.bin by a tokenizer that is
// trained on it or loaded, and kept as `run`/tokenizer.json; where `made`, both are there already
// and the text is not looked at again.
TrainData open_train_data(const TrainConfig& config, const std::filesystem::path& run, bool made);

}  // namespace tessera::cli
