#include "tessera/infer/generator.h"

#include <algorithm>
#include <bit>

#include "tessera/infer/device_var.h"
#include "tessera/infer/kv_cache.h"
#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

constexpr size_t kSessions = 4;         // kept, each with a cache
constexpr int64_t kLeastCapacity = 64;  // of a cache
constexpr int64_t kLeastPrompt = 16;    // columns of a prefill

// Sizes are rounded up to powers of two, so that few Programs serve every length.
int64_t rounded(int64_t n, int64_t least, int64_t most) {
  return std::min(int64_t(std::bit_ceil(uint64_t(std::max(n, least)))), most);
}

// The texts of all rows, the last tokens of which are in one column.
struct Texts {
  explicit Texts(const std::vector<Tokens>& prompts) : rows(prompts) {
    for (const Tokens& prompt : prompts) columns = std::max(columns, int64_t(prompt.size()));
  }

  void append(size_t row, int32_t token) { rows[row].push_back(token); }

  // How many of the last columns do not belong to a row.
  std::vector<int64_t> pads() const {
    std::vector<int64_t> pads;
    for (const Tokens& row : rows) pads.push_back(std::max<int64_t>(columns - length(row), 0));
    return pads;
  }

  // The last `columns` of each row, from the left padded with token 0, to the right up to `width`.
  std::vector<int32_t> matrix(int64_t width) const {
    std::vector<int32_t> matrix(rows.size() * size_t(width), 0);
    for (size_t r = 0; r < rows.size(); ++r) {
      const int64_t used = std::min(columns, length(rows[r]));
      std::copy_n(rows[r].end() - used, used, matrix.begin() + int64_t(r) * width + columns - used);
    }
    return matrix;
  }

  static int64_t length(const Tokens& row) { return int64_t(row.size()); }

  std::vector<Tokens> rows;
  int64_t columns = 0;  // that the model sees
};

}  // namespace

// What is compiled for one number of rows and one capacity.
struct Generator::Session {
  Session(const Gpt& model_, int64_t choices, int64_t rows, int64_t capacity, DType dtype_,
          Device device_)
      : model(model_),
        dtype(dtype_),
        device(device_),
        cache(model.config(), rows, capacity, dtype, device),
        sampler(rows, choices, device),
        last(device_var(zeros({rows}, DType::i64), "cache.last", device)),
        prefill([this, choices](std::span<const Tensor> in, std::span<const int64_t> statics) {
          const Tensor x = cache.prefill(model, in[0], in[1], statics[0] != 0);
          return choose(x, choices, statics);
        }),
        decode([this, choices](std::span<const Tensor>, std::span<const int64_t> statics) {
          return choose(cache.decode(model, last, statics[0] != 0), choices, statics);
        }) {}

  std::vector<Tensor> choose(const Tensor& x, int64_t choices, std::span<const int64_t> statics) {
    const Tensor logits = slice(model.head(x), -1, 0, choices);
    const Tensor tokens = sampler.choose(logits, SamplingForm::from(statics.subspan(1)));
    last.assign(tokens);
    return {tokens};
  }

  // The tokens that follow the texts.
  std::vector<int64_t> start(const Texts& texts, const std::vector<int64_t>& statics) {
    cache.set_pads(texts.pads());
    const int64_t width = rounded(texts.columns, kLeastPrompt, cache.capacity());
    const Tensor tokens = tensor(texts.matrix(width), {cache.rows(), width}).to(device);
    const std::vector<Tensor> in = {tokens, scalar(texts.columns).to(device)};
    return prefill(in, statics)[0].to_vector<int64_t>();
  }

  const Gpt& model;
  const DType dtype;
  const Device device;
  KvCache cache;
  Sampler sampler;
  Var last;  // (B) i64: the tokens chosen last
  Compiled prefill, decode;
};

Generator::Generator(const Gpt& model, int64_t choices)
    : model_(model), choices_(choices == 0 ? model.config().vocabulary : choices) {
  if (choices_ < 1 || choices_ > model.config().vocabulary) {
    fail("generate: expected a choice of 1 to ", model.config().vocabulary, " tokens, got ",
         choices_);
  }
}

Generator::~Generator() = default;

Generator::Session& Generator::session(int64_t rows, int64_t tokens) {
  const int64_t capacity = rounded(tokens, kLeastCapacity, model_.config().context);
  const Var table = model_.parameters()[0];
  const DType dtype = table.dtype();
  const Device device = table.value().device();
  const auto fits = [&](const auto& s) {
    return s->cache.rows() == rows && s->cache.capacity() == capacity && s->dtype == dtype &&
           s->device == device;
  };
  const auto found = std::ranges::find_if(sessions_, fits);
  if (found != sessions_.end()) {
    sessions_.splice(sessions_.begin(), sessions_, found);
    return *sessions_.front();
  }
  if (sessions_.size() == kSessions) {
    const CompiledStats all = stats();
    sessions_.pop_back();
    const CompiledStats left = stats();
    dropped_.compilations += all.compilations - left.compilations;
    dropped_.replays += all.replays - left.replays;
  }
  sessions_.push_front(std::make_unique<Session>(model_, choices_, rows, capacity, dtype, device));
  return *sessions_.front();
}

CompiledStats Generator::stats() const {
  CompiledStats total = dropped_;
  for (const auto& session : sessions_) {
    for (const Compiled* function : {&session->prefill, &session->decode}) {
      total.compilations += function->stats().compilations;
      total.replays += function->stats().replays;
    }
  }
  return total;
}

std::vector<Tokens> Generator::generate(const std::vector<Tokens>& prompts,
                                        const GenerateOptions& options, const OnToken& on_token) {
  const int64_t context = model_.config().context;
  if (prompts.empty()) fail("generate: expected at least 1 prompt, got 0");
  for (const Tokens& prompt : prompts) {
    if (prompt.empty() || Texts::length(prompt) > context) {
      fail("generate: expected prompts of 1 to ", context, " tokens, got one of ", prompt.size());
    }
  }
  if (options.tokens < 0) fail("generate: expected at least 0 tokens, got ", options.tokens);
  check(options.sampling);

  const ModeGuard evaluation(false);
  Texts texts(prompts);
  Session& s = session(int64_t(prompts.size()), texts.columns + options.tokens);
  const SamplingForm form = s.sampler.begin(options.sampling, prompts);
  std::vector<Tokens> made(prompts.size());
  std::vector<bool> ended(prompts.size(), false);
  bool restart = true;
  for (int64_t step = 0; step < options.tokens; ++step) {
    const std::vector<int64_t> pads = texts.pads();
    const bool padded = std::ranges::any_of(pads, [](int64_t pad) { return pad > 0; });
    std::vector<int64_t> statics = form.statics();
    statics.insert(statics.begin(), padded);
    const std::vector<int64_t> chosen =
        restart ? s.start(texts, statics) : s.decode({}, statics)[0].to_vector<int64_t>();
    for (size_t row = 0; row < made.size(); ++row) {
      const auto token = int32_t(chosen[row]);
      texts.append(row, token);
      if (ended[row]) continue;
      ended[row] = token == options.end_token;
      if (ended[row]) continue;
      made[row].push_back(token);
      if (on_token && !on_token(int64_t(row), token)) ended[row] = true;
    }
    if (std::ranges::all_of(ended, [](bool e) { return e; })) break;
    ++texts.columns;
    restart = texts.columns > context;
    if (restart) texts.columns = std::max<int64_t>(context / 2, 1);
  }
  return made;
}

}  // namespace tessera
