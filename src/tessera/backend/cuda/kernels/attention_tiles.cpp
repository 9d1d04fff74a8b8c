#include "tessera/backend/cuda/kernels/attention_tiles.h"

#include <algorithm>
#include <limits>

#include "tessera/backend/cuda/kernels/attention_tiles_text.h"
#include "tessera/backend/cuda/kernels/tile_products.h"
#include "tessera/backend/gpu/attention.h"
#include "tessera/backend/gpu/chunks.h"

namespace tessera::cuda {

namespace {

using gpu::Arguments;
using gpu::AttentionCall;
using gpu::AttentionProblem;

constexpr int64_t kChunk = 8, kWarp = 32, kMostColumns = 128, kTileAlignment = 1024;
constexpr int64_t kTermLanes = 256;

int64_t padded(int64_t columns) { return (columns + 63) / 64 * 64; }

bool suits(const AttentionCall& call) {
  // The greatest score is that of the greatest product.
  if (!is_half(call.dtype()) || !(call.call().attrs.scalar >= 0)) return false;
  for (const View* view : {&call.q(), &call.k(), &call.v()}) {
    if (!gpu::is_chunked(*view, call.dtype()) || view->shape[3] > kMostColumns) return false;
    if (view->shape[2] > std::numeric_limits<int32_t>::max()) return false;
  }
  if (!gpu::is_chunked(call.y(), call.dtype())) return false;
  if (!call.is_backward()) return true;
  for (const View* view : {&call.g(), &call.gradient(0), &call.gradient(1), &call.gradient(2)}) {
    if (!gpu::is_chunked(*view, call.dtype())) return false;
  }
  return true;
}

// Rows of a group's own tiles, and of those it walks along.
struct TileRows {
  int64_t rows, cols;
};

class AttentionTiles : public gpu::GpuExecutable {
 public:
  AttentionTiles(gpu::Session& session, const AttentionCall& call)
      : session_(session), call_(call) {}

  // What a group has in shared memory, at most.
  int64_t shared_bytes() const {
    if (!call_.is_backward()) return bytes_of(queries_tile(), depth());
    return std::max(bytes_of(queries_tile(), depth() + values()),
                    bytes_of(keys_tile(), depth() + values()) + beside_keys());
  }

  void build() {
    if (call_.is_backward()) {
      to_queries_ = kernel(kTileQueries, "tessera_attention_query_tiles", queries_tile());
      to_keys_ = kernel(kTileKeys, "tessera_attention_key_tiles", keys_tile());
      terms_ = kernel(kTileTerms, "tessera_attention_terms", queries_tile());
    } else {
      forward_ = kernel(kTileForward, "tessera_attention_tiles", queries_tile());
    }
  }

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    if (forward_) {
      launch_forward(at, stream);
    } else {
      launch_backward(at, stream);
    }
  }

 private:
  int64_t depth() const { return padded(call_.q().shape[3]); }
  int64_t values() const { return padded(call_.v().shape[3]); }
  bool is_wide() const { return depth() > 64 || values() > 64; }

  // Registers hold two or four results of a tile at once, and what options need beside them.
  bool is_plain() const { return (call_.options() & (kAttentionMask | kAttentionDropout)) == 0; }
  TileRows queries_tile() const {
    if (!call_.is_backward()) return {128, 64};
    return is_wide() ? TileRows{128, is_plain() ? 32 : 16} : TileRows{64, is_plain() ? 64 : 32};
  }
  TileRows keys_tile() const {
    return is_wide() ? TileRows{128, is_plain() ? 32 : 16} : TileRows{64, is_plain() ? 64 : 16};
  }

  std::unique_ptr<gpu::Kernel> kernel(std::string_view text, const char* entry,
                                      const TileRows& tile) const {
    return session_.build(
        call_.call().kernel,
        call_.source(session_,
                     cat(kTileSizes, tile_products_text(call_.dtype()), kTileCommon, text),
                     {{"$lanes", cat(lanes(tile))},
                      {"$rows", cat(tile.rows)},
                      {"$cols", cat(tile.cols)},
                      {"$options", cat(call_.options())}}),
        entry);
  }

  static int64_t lanes(const TileRows& tile) { return tile.rows / 16 * kWarp; }

  // A tile of its own, of so many columns in all, and two of each that it walks along.
  int64_t bytes_of(const TileRows& tile, int64_t own) const {
    const int64_t elements = tile.rows * own + 2 * tile.cols * (depth() + values());
    return elements * size_of(call_.dtype()) + kTileAlignment;
  }
  // Two numbers of each query, of two tiles.
  int64_t beside_keys() const { return 4 * keys_tile().cols * int64_t(sizeof(float)); }

  static gpu::Range range_of(const TileRows& tile, int64_t extent, int64_t matrices,
                             int64_t bytes) {
    gpu::Range range;
    range.group[0] = size_t(lanes(tile));
    range.groups[0] = size_t((extent + tile.rows - 1) / tile.rows * matrices);
    range.local_bytes = size_t(bytes);
    return range;
  }

  void launch_forward(std::span<const BufferRef> at, Stream stream) const {
    const TileRows tile = queries_tile();
    const Shape& q = call_.q().shape;
    forward_->launch(stream, range_of(tile, q[2], q[0] * q[1], bytes_of(tile, depth())),
                     call_.forward_arguments<float>(at));
  }

  void launch_backward(std::span<const BufferRef> at, Stream stream) const {
    const AttentionProblem<float> problem = call_.problem<float>();
    const int out = call_.first_output();
    const int64_t by_heads = problem.batch * problem.heads, rows = by_heads * problem.queries;
    void* const terms = session_.workspace(stream, rows * int64_t(sizeof(float)));
    {
      Arguments args;
      call_.add_operand(args, at, 0);
      call_.add_operand(args, at, 4);
      args.add(terms);
      args.add(problem);
      terms_->launch(stream, gpu::range_of(rows * (values() / kChunk), kTermLanes), args);
    }
    if (at[size_t(out)].handle != nullptr) {
      Arguments args;
      call_.add_inputs(args, at);
      call_.add_operand(args, at, out);
      args.add(terms);
      args.add(problem);
      const TileRows tile = queries_tile();
      const int64_t bytes = bytes_of(tile, depth() + values());
      to_queries_->launch(stream, range_of(tile, problem.queries, by_heads, bytes), args);
    }
    if (const int32_t wanted = gpu::wanted_outputs(at, out + 1); wanted != 0) {
      Arguments args;
      call_.add_inputs(args, at);
      call_.add_operand(args, at, out + 1);
      call_.add_operand(args, at, out + 2);
      args.add(terms);
      args.add(problem);
      args.add(wanted);
      const TileRows tile = keys_tile();
      const int64_t bytes = bytes_of(tile, depth() + values()) + beside_keys();
      to_keys_->launch(stream, range_of(tile, problem.keys, problem.batch * problem.groups, bytes),
                       args);
    }
  }

  gpu::Session& session_;
  const AttentionCall call_;
  std::unique_ptr<gpu::Kernel> forward_, to_queries_, to_keys_, terms_;
};

}  // namespace

std::unique_ptr<gpu::GpuExecutable> make_attention_tiles(gpu::Session& session,
                                                         const KernelCall& call) {
  AttentionCall attention(call);
  if (!suits(attention)) return nullptr;
  auto made = std::make_unique<AttentionTiles>(session, attention);
  if (made->shared_bytes() > session.device().local_bytes_asked) return nullptr;
  made->build();
  return made;
}

}  // namespace tessera::cuda
