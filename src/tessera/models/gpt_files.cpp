#include <system_error>

#include "tessera/base/pattern.h"
#include "tessera/io/atomic_file.h"
#include "tessera/io/mapped_file.h"
#include "tessera/models/gpt.h"
#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

constexpr std::string_view kPrefix = "transformer.";  // of all but the head

// HuggingFace keeps these as a Conv1D does: (in, out).
bool is_transposed(std::string_view name) { return matches_pattern("h.*.c_*.weight", name); }

// Older files hold the causal mask.
bool is_mask(std::string_view name) {
  return matches_pattern("h.*.attn.bias", name) || matches_pattern("h.*.attn.masked_bias", name);
}

Json read_json(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  return Json::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

}  // namespace

NamedTensors to_pretrained(const Gpt& model) {
  NamedTensors tensors;
  for (const auto& [name, value] : model.state_dict()) {
    const bool is_head = name.starts_with("lm_head.");
    tensors.emplace(cat(is_head ? "" : kPrefix, name),
                    is_transposed(name) ? transpose(value) : value);
  }
  return tensors;
}

void load_pretrained(const Gpt& model, const NamedTensors& tensors, std::string_view name) {
  NamedTensors state;
  for (const auto& [key, value] : tensors) {
    const std::string short_key = key.starts_with(kPrefix) ? key.substr(kPrefix.size()) : key;
    if (is_mask(short_key)) continue;
    const bool turn = is_transposed(short_key) && value.rank() == 2;
    if (!state.emplace(short_key, turn ? transpose(value) : value).second) {
      fail("load_gpt: ", name, ": '", short_key, "' is there twice, with and without '", kPrefix,
           "'");
    }
  }
  try {
    model.load_state_dict(state);
  } catch (const Error& error) {
    fail("load_gpt: ", name, ": ", error.what());
  }
}

void save_pretrained(const std::filesystem::path& folder, const Gpt& model) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail("save_pretrained: cannot make ", folder.string(), ": ", error.message());
  save_safetensors(folder / "model.safetensors", to_pretrained(model), {{"format", "pt"}});
  const std::string config = to_json(model.config()).dump(2) + "\n";
  AtomicFile file(folder / "config.json");
  file.write(std::as_bytes(std::span(config)));
  file.commit();
}

std::unique_ptr<Gpt> load_gpt(const std::filesystem::path& folder, DType dtype) {
  const std::filesystem::path config = folder / "config.json";
  const std::filesystem::path weights = folder / "model.safetensors";
  for (const auto& path : {config, weights}) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      fail("load_gpt: expected a folder with config.json and model.safetensors, got ",
           folder.string(), " without ", path.filename().string());
    }
  }
  auto model = std::make_unique<Gpt>(parse_gpt_config(read_json(config), config.string()));
  if (dtype != DType::f32) model->to(dtype);
  load_pretrained(*model, load_safetensors(weights), weights.string());
  return model;
}

}  // namespace tessera
