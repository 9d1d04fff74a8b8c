// A small model of bytes that writes nonsense, in a folder as `tessera generate` reads it.
#pragma once

#include <filesystem>

#include "tessera/tessera.h"

namespace tessera {

inline GptConfig text_model_config() {
  return {.vocabulary = 260, .context = 24, .width = 16, .layers = 1, .heads = 2, .deviation = 0.4};
}

inline void write_text_model(const std::filesystem::path& folder,
                             const GptConfig& config = text_model_config()) {
  init();
  save_pretrained(folder, Gpt(config, Random(1)));
  save_tokenizer(folder / "tokenizer.json", byte_tokenizer());
}

}  // namespace tessera
