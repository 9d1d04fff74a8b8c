// attention and attention_backward, one tile of scores at a time: see attention_text.h.
#include "tessera/backend/gpu/attention.h"

#include <algorithm>

#include "tessera/backend/gpu/attention_kernels_text.h"
#include "tessera/backend/gpu/attention_text.h"
#include "tessera/backend/gpu/chunks.h"
#include "tessera/codegen/text.h"

namespace tessera::gpu {

namespace {

constexpr int64_t kChunkBytes = 16;
constexpr int64_t kLocalBytes = 32768;  // more could leave a compute unit one group at a time
constexpr int64_t kFewRows = 9;         // a tile of 16 rows serves as few as there are
constexpr int64_t kUnrolled = 1;        // chunks along a product, at a time

// Of scores and results in a lane's registers: at most, where masks or f64 need registers beside
// them, and where so many lanes of a compute unit are to have registers at once.
constexpr int64_t kHeldBytes = 512, kHeldBeside = 320, kHeldAtOnce = 384;
constexpr int64_t kLanesAtOnce = 384;

// How a group's tiles are shared out: lanes side by side and below each other, and the rows and
// columns of scores that each of them holds.
struct Tile {
  int64_t across, down, rows, columns;

  int64_t lanes() const { return across * down; }
  int64_t height() const { return down * rows; }
  int64_t width() const { return across * columns; }
};

// The first that suits is taken. More lanes side by side hold wider heads.
constexpr Tile kTiles[] = {
    {8, 16, 8, 4}, {8, 16, 4, 8}, {16, 8, 8, 2}, {16, 16, 4, 2}, {8, 8, 4, 4},
    {16, 8, 4, 2}, {8, 4, 4, 4},  {32, 4, 4, 1}, {8, 4, 2, 2},   {8, 4, 1, 1},
    {4, 2, 1, 1},  {2, 2, 1, 1},  {1, 1, 1, 1},
};
// There is a lane for each column of scores.
static_assert(std::ranges::all_of(kTiles, [](const Tile& t) { return t.columns <= t.down; }));

// The kernels that have tiles of scores.
enum class Part { forward, queries, keys };

class Attention : public GpuExecutable {
 public:
  Attention(Session& session, const KernelCall& call)
      : session_(session),
        call_(call),
        queries_(call_.q().shape[2]),
        keys_(call_.k().shape[2]),
        depth_(call_.q().shape[3]),
        values_(call_.v().shape[3]),
        number_(size_of(compute_type(call_.dtype()))) {
    for (const View* view : {&call_.q(), &call_.k(), &call_.v()}) {
      TESSERA_ASSERT(!view->shape.contains(0));
    }
    if (call_.is_backward()) {
      to_queries_ = build(Part::queries, kAttentionQueries, "tessera_attention_queries");
      to_keys_ = build(Part::keys, kAttentionKeys, "tessera_attention_keys");
      terms_ = build(Part::keys, kAttentionTerms, "tessera_attention_terms");
    } else {
      forward_ = build(Part::forward, kAttentionForward, "tessera_attention");
    }
  }

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    if (call_.dtype() == DType::f64) {
      launch_as(at, call_.problem<double>(), stream);
    } else {
      launch_as(at, call_.problem<float>(), stream);
    }
  }

 private:
  struct Built {
    Tile tile;
    int64_t bytes;  // of local memory
    std::unique_ptr<Kernel> kernel;
  };

  int64_t chunks(int64_t numbers) const {
    const int64_t width = kChunkBytes / number_;
    return (numbers + width - 1) / width;
  }

  // Of local memory, by what the kernels lay out in it.
  int64_t local_bytes(Part part, const Tile& tile) const {
    const int64_t both = (chunks(depth_) | 1) + (chunks(values_) | 1);
    const int64_t own = part == Part::forward ? chunks(depth_) | 1 : both;
    const int64_t beside = part == Part::forward ? tile.height() * chunks(tile.across)
                           : part == Part::keys  ? chunks(2 * tile.width())
                                                 : 0;
    const int64_t weights = tile.height() * (chunks(tile.width()) + 2);
    return (tile.height() * own + tile.width() * both + weights + beside) * kChunkBytes;
  }

  // Of scores and results, in a lane's registers.
  int64_t held_bytes(Part part, const Tile& tile) const {
    const auto result = [&](int64_t columns) {
      return (chunks(columns) + tile.across - 1) / tile.across * kChunkBytes;
    };
    const int64_t scores = tile.columns * number_;
    const int64_t row = part == Part::forward   ? scores + result(values_)
                        : part == Part::queries ? 2 * scores + result(depth_)
                                                : 2 * scores + result(depth_) + result(values_);
    return tile.rows * row;
  }

  // Masks, dropout and the exponents of f64 need registers of their own.
  bool is_plain() const {
    return number_ == sizeof(float) &&
           (call_.options() & (kAttentionMask | kAttentionDropout)) == 0;
  }
  int64_t most_held() const { return is_plain() ? kHeldBytes : kHeldBeside; }

  // Groups of a compute unit that registers should have room for.
  int64_t groups_at_once(Part part, const Tile& tile) const {
    if (!is_plain() || held_bytes(part, tile) > kHeldAtOnce) return 1;
    const int64_t groups =
        std::min(most_local() / local_bytes(part, tile), kLanesAtOnce / tile.lanes());
    return std::max<int64_t>(groups, 1);
  }

  std::string bounds_text(Part part, const Tile& tile) const {
    return is_sized_by_launch() ? cat("LANES, ", groups_at_once(part, tile)) : "LANES";
  }

  // Rows that there are fill more than half of the tile, or it is a low one.
  bool is_filled(Part part, const Tile& tile) const {
    return tile.height() < 2 * std::max(part == Part::keys ? keys_ : queries_, kFewRows);
  }

  bool is_sized_by_launch() const { return session_.device().dialect->is_sized_by_launch; }

  // Of local memory that a launch may ask for, where that is how memory is had.
  int64_t local_asked() const {
    return is_sized_by_launch() ? session_.device().local_bytes_asked : 0;
  }
  int64_t most_local() const { return std::max(session_.device().local_bytes, local_asked()); }

  Tile choose_tile(Part part) const {
    const DeviceTraits& device = session_.device();
    const int64_t shared = std::max(std::min(kLocalBytes, device.local_bytes), local_asked() / 2);
    for (const int64_t room : {shared, most_local()}) {
      for (const Tile& tile : kTiles) {
        if (tile.lanes() > device.largest_group || local_bytes(part, tile) > room) continue;
        const bool suits = is_filled(part, tile) && held_bytes(part, tile) <= most_held();
        if (suits || tile.rows * tile.columns == 1) return tile;
      }
    }
    fail(call_.call().kernel, ": heads of ", depth_, " and ", values_, " columns need ",
         local_bytes(part, std::end(kTiles)[-1]), " bytes of local memory, ", device.name, " has ",
         most_local());
  }

  // Whether rows are whole chunks, as the tiles have them.
  bool is_packed(const View& view) const {
    return size_of(call_.dtype()) == number_ && is_chunked(view, call_.dtype());
  }

  std::string chunk_text() const {
    std::string text = replace_all(session_.device().dialect->vector, "$type", "$T");
    text = replace_all(text, "$bytes", cat(kChunkBytes));
    return replace_all(text, "$name", "Chunk");
  }

  std::string room_text(int64_t bytes) const {
    const std::string_view memory = session_.device().dialect->row_memory;
    return replace_all(replace_all(memory, "$name", "room"), "$bytes", cat(bytes));
  }

  Built build(Part part, std::string_view text, const char* entry) const {
    const Tile tile = choose_tile(part);
    const int64_t bytes = local_bytes(part, tile);
    const auto packed = [this](const View& view) -> std::string {
      return is_packed(view) ? "true" : "false";
    };
    const auto gradient = [&](int i) {
      return call_.is_backward() ? packed(call_.gradient(i)) : "false";
    };
    const std::string source =
        call_.source(session_, cat(kAttentionTiles, text),
                     {{"$chunk", chunk_text()},
                      {"$room", room_text(bytes)},
                      {"$across", cat(tile.across)},
                      {"$down", cat(tile.down)},
                      {"$rows", cat(tile.rows)},
                      {"$columns", cat(tile.columns)},
                      {"$width", cat(kChunkBytes / number_)},
                      {"$unroll", held_bytes(part, tile) <= most_held() ? "#pragma unroll" : ""},
                      {"$bounds", bounds_text(part, tile)},
                      {"$along", cat(kUnrolled)},
                      {"$options", cat(call_.options())},
                      {"$exp", number_ == 4 ? "t_near_exp" : "exp"},
                      {"$q_packed", packed(call_.q())},
                      {"$k_packed", packed(call_.k())},
                      {"$v_packed", packed(call_.v())},
                      {"$y_packed", packed(call_.y())},
                      {"$g_packed", packed(call_.g())},
                      {"$dq_packed", gradient(0)},
                      {"$dk_packed", gradient(1)},
                      {"$dv_packed", gradient(2)}});
    return {tile, bytes, session_.build(call_.call().kernel, source, entry)};
  }

  // Groups for all blocks of rows.
  Range range_of(const Built& built, int64_t rows, int64_t matrices) const {
    const int64_t height = built.tile.height();
    Range range;
    range.group[0] = size_t(built.tile.lanes());
    range.groups[0] = size_t((rows + height - 1) / height * matrices);
    range.local_bytes = is_sized_by_launch() ? size_t(built.bytes) : 0;
    return range;
  }

  template <class T>
  void launch_as(std::span<const BufferRef> at, const AttentionProblem<T>& problem,
                 Stream stream) const {
    const int out = call_.first_output();
    const int64_t by_heads = problem.batch * problem.heads;
    if (!call_.is_backward()) {
      return forward_.kernel->launch(stream, range_of(forward_, queries_, by_heads),
                                     call_.forward_arguments<T>(at));
    }
    void* const terms = session_.workspace(stream, by_heads * queries_ * number_);
    {
      Arguments args;
      call_.add_operand(args, at, 0);
      call_.add_operand(args, at, 4);
      args.add(terms);
      args.add(problem);
      const Tile& tile = terms_.tile;
      terms_.kernel->launch(stream, gpu::range_of(by_heads * queries_ * tile.across, tile.lanes()),
                            args);
    }
    if (at[size_t(out)].handle != nullptr) {
      Arguments args;
      call_.add_inputs(args, at);
      call_.add_operand(args, at, out);
      args.add(terms);
      args.add(problem);
      to_queries_.kernel->launch(stream, range_of(to_queries_, queries_, by_heads), args);
    }
    if (const int32_t wanted = wanted_outputs(at, out + 1); wanted != 0) {
      Arguments args;
      call_.add_inputs(args, at);
      call_.add_operand(args, at, out + 1);
      call_.add_operand(args, at, out + 2);
      args.add(terms);
      args.add(problem);
      args.add(wanted);
      to_keys_.kernel->launch(stream, range_of(to_keys_, keys_, problem.batch * problem.groups),
                              args);
    }
  }

  Session& session_;
  const AttentionCall call_;
  const int64_t queries_, keys_, depth_, values_;
  const int64_t number_;  // bytes of a number of the compute type
  Built forward_, to_queries_, to_keys_, terms_;
};

}  // namespace

AttentionCall::AttentionCall(const KernelCall& call) : call_(call) {
  const bool backward = call.kernel == "attention_backward";
  q_ = backward ? 1 : 0;
  int next = backward ? 6 : 3;
  if (options() & kAttentionMask) mask_ = next++;
  if (options() & kAttentionLengths) lengths_ = next++;
  if (options() & kAttentionDropout) {
    key_ = next;
    next += 2;
  }
  outputs_ = next;
  const int expected = outputs_ + call.outputs;
  if (int(call.operands.size()) != expected) {
    fail(call.kernel, ": expected ", expected, " operands for options ", options(), ", got ",
         call.operands.size());
  }
}

template <class T>
AttentionProblem<T> AttentionCall::problem() const {
  const auto strides = [this](int i) {
    AttentionStrides result;
    for (int axis = 0; i >= 0 && axis < view(i).shape.rank(); ++axis) {
      result.at[axis] = view(i).strides[axis];
    }
    return result;
  };
  const auto only = [&](bool here, int i) { return strides(here ? i : -1); };
  const bool backward = is_backward();
  return {q().shape[0],
          q().shape[1],
          k().shape[1],
          q().shape[2],
          k().shape[2],
          options(),
          strides(q_),
          strides(q_ + 1),
          strides(q_ + 2),
          strides(mask_),
          strides(lengths_),
          only(backward, 0),
          strides(backward ? 4 : outputs_),
          only(backward, 5),
          only(backward, outputs_),
          only(backward, outputs_ + 1),
          only(backward, outputs_ + 2),
          T(call_.attrs.scalar),
          T(1 / (1 - call_.attrs.rate)),
          float(1 - call_.attrs.rate)};
}
template AttentionProblem<float> AttentionCall::problem() const;
template AttentionProblem<double> AttentionCall::problem() const;

template <class T>
Arguments AttentionCall::forward_arguments(std::span<const BufferRef> at) const {
  Arguments args;
  add_inputs(args, at);
  add_operand(args, at, outputs_);
  add_operand(args, at, outputs_ + 1);
  args.add(problem<T>());
  args.add(wanted_outputs(at, outputs_));
  return args;
}
template Arguments AttentionCall::forward_arguments<float>(std::span<const BufferRef>) const;
template Arguments AttentionCall::forward_arguments<double>(std::span<const BufferRef>) const;

void AttentionCall::add_operand(Arguments& args, std::span<const BufferRef> at, int i) const {
  args.add(i < 0 ? Operand{} : operand(at[size_t(i)], call_.operands[size_t(i)]));
}

void AttentionCall::add_inputs(Arguments& args, std::span<const BufferRef> at) const {
  for (int i = 0; i < (is_backward() ? 6 : 3); ++i) add_operand(args, at, i);
  for (const int i : {mask_, lengths_, key_, key_ < 0 ? -1 : key_ + 1}) add_operand(args, at, i);
}

std::string AttentionCall::source(const Session& session, std::string_view text,
                                  Replacements words) const {
  const bool adds = mask_ >= 0 && call_.operands[size_t(mask_)].dtype != DType::boolean;
  std::string whole = cat(kAttentionCommon, text);
  for (const auto& [word, value] : words) whole = replace_all(whole, word, value);
  return complete_source(session, whole, dtype(),
                         {{"$depth", cat(q().shape[3])},
                          {"$values", cat(v().shape[3])},
                          {"$masked", adds ? "m == UNSEEN ? UNSEEN : dot + m" : "m ? dot : UNSEEN"},
                          {"$M", adds ? "$T" : "u8"}});
}

int32_t wanted_outputs(std::span<const BufferRef> at, int first) {
  return (at[size_t(first)].handle ? 1 : 0) | (at[size_t(first) + 1].handle ? 2 : 0);
}

std::unique_ptr<GpuExecutable> make_attention(Session& session, const KernelCall& call) {
  return std::make_unique<Attention>(session, call);
}

std::unique_ptr<GpuExecutable> make_attention_backward(Session& session, const KernelCall& call) {
  return std::make_unique<Attention>(session, call);
}

}  // namespace tessera::gpu
