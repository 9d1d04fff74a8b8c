// attention and attention_backward, one tile of scores at a time: see attention_text.h.
#include <algorithm>
#include <limits>
#include <vector>

#include "tessera/backend/gpu/attention_text.h"
#include "tessera/backend/gpu/named_kernel.h"
#include "tessera/base/attention_options.h"
#include "tessera/codegen/text.h"

namespace tessera::gpu {

namespace {

constexpr int64_t kLanes = 64;
constexpr int64_t kLocalBytes = 32768;  // more would leave a compute unit one group at a time

struct Tile {
  int64_t queries, keys;
};
constexpr Tile kTiles[] = {{16, 32}, {16, 16}, {8, 16}, {8, 8}, {4, 4}, {2, 2}, {1, 1}};

// The argument of the kernels, T its compute type.
template <class T>
struct Problem {
  int64_t batch, heads, groups, queries, keys, options;
  Axes q, k, v, mask, lengths, g, y, lse;
  T scale, kept_scale;
  float keep;
};

// Where the operands of a call are, forward or backward.
struct Places {
  explicit Places(const KernelCall& call) {
    const bool backward = call.kernel == "attention_backward";
    q = backward ? 1 : 0;
    int next = backward ? 6 : 3;
    const int64_t options = call.attrs.axis;
    if (options & kAttentionMask) mask = next++;
    if (options & kAttentionLengths) lengths = next++;
    if (options & kAttentionDropout) {
      key = next;
      next += 2;
    }
    outputs = next;
    const int expected = outputs + call.outputs;
    if (int(call.operands.size()) != expected) {
      fail(call.kernel, ": expected ", expected, " operands for options ", options, ", got ",
           call.operands.size());
    }
  }

  int q, mask = -1, lengths = -1, key = -1, outputs;
};

class Attention : public GpuExecutable {
 public:
  Attention(Session& session, const KernelCall& call)
      : session_(session),
        call_(call),
        places_(call),
        lanes_(group_size(session, kLanes)),
        queries_(view(places_.q).shape[2]),
        keys_(view(places_.q + 1).shape[2]),
        depth_(view(places_.q).shape[3]),
        values_(view(places_.q + 2).shape[3]) {
    for (int i = 0; i < 3; ++i) TESSERA_ASSERT(!view(places_.q + i).shape.contains(0));
    choose_tile();
    if (is_backward()) {
      to_queries_ = kernel(kAttentionQueries, "tessera_attention_queries");
      to_keys_ = kernel(kAttentionKeys, "tessera_attention_keys");
    } else {
      forward_ = kernel(kAttentionForward, "tessera_attention");
    }
  }

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    if (dtype() == DType::f64) {
      launch_as(at, problem<double>(), stream);
    } else {
      launch_as(at, problem<float>(), stream);
    }
  }

 private:
  const View& view(int i) const { return call_.operands[size_t(i)].view; }
  DType dtype() const { return call_.operands[size_t(places_.q)].dtype; }
  bool is_backward() const { return places_.q == 1; }

  // Numbers of the compute type in local memory, by the declarations of the kernels.
  int64_t local_elements(const Tile& t) const {
    const int64_t d = depth_, e = values_, scores = t.queries * t.keys;
    if (!is_backward()) {
      return t.queries * (d + e + 3) + t.keys * std::max(d, e) + scores;
    }
    return t.queries * (d + e + 2 + d) + 2 * t.keys * (d + e) + 2 * scores;
  }

  void choose_tile() {
    const int64_t size = size_of(compute_type(dtype()));
    const int64_t local = session_.device().local_bytes;
    for (const int64_t room : {std::min(kLocalBytes, local), local}) {
      for (const Tile& tile : kTiles) {
        tile_ = tile;
        if (local_elements(tile) * size <= room) return;
      }
    }
    fail(call_.kernel, ": heads of ", depth_, " and ", values_, " columns need ",
         local_elements(tile_) * size, " bytes of local memory, ", session_.device().name, " has ",
         local);
  }

  std::unique_ptr<Kernel> kernel(std::string_view text, const char* entry) const {
    const bool adds =
        places_.mask >= 0 && call_.operands[size_t(places_.mask)].dtype != DType::boolean;
    return session_.build(
        call_.kernel,
        complete_source(session_, cat(kAxesText, kAttentionCommon, text), dtype(),
                        {{"$bq", cat(tile_.queries)},
                         {"$bk", cat(tile_.keys)},
                         {"$depth", cat(depth_)},
                         {"$values", cat(values_)},
                         {"$lanes", cat(lanes_)},
                         {"$masked", adds ? "m == UNSEEN ? UNSEEN : dot + m" : "m ? dot : UNSEEN"},
                         {"$M", adds ? "$T" : "u8"}}),
        entry);
  }

  template <class T>
  Problem<T> problem() const {
    auto strides = [this](int i) { return i < 0 ? Axes() : axes_of(view(i).strides, 0); };
    const Shape &q = view(places_.q).shape, &k = view(places_.q + 1).shape;
    const bool backward = is_backward();
    return {q[0],
            q[1],
            k[1],
            queries_,
            keys_,
            call_.attrs.axis,
            strides(places_.q),
            strides(places_.q + 1),
            strides(places_.q + 2),
            strides(places_.mask),
            strides(places_.lengths),
            strides(backward ? 0 : -1),
            strides(backward ? 4 : -1),
            strides(backward ? 5 : -1),
            T(call_.attrs.scalar),
            T(1 / (1 - call_.attrs.rate)),
            float(1 - call_.attrs.rate)};
  }

  Operand at_place(std::span<const BufferRef> at, int i) const {
    return i < 0 ? Operand{} : operand(at[size_t(i)], call_.operands[size_t(i)]);
  }

  // Everything before the outputs.
  void add_inputs(Arguments& args, std::span<const BufferRef> at) const {
    for (int i = 0; i < (is_backward() ? 6 : 3); ++i) args.add(at_place(at, i));
    for (const int i :
         {places_.mask, places_.lengths, places_.key, places_.key < 0 ? -1 : places_.key + 1}) {
      args.add(at_place(at, i));
    }
  }

  Range blocks_of(int64_t extent, int64_t block, int64_t matrices) const {
    Range range;
    range.group[0] = size_t(lanes_);
    range.groups[0] = size_t((extent + block - 1) / block * matrices);
    return range;
  }

  template <class T>
  void launch_as(std::span<const BufferRef> at, const Problem<T>& problem, Stream stream) const {
    const int out = places_.outputs;
    const int64_t by_heads = problem.batch * problem.heads;
    const int64_t by_groups = problem.batch * problem.groups;
    auto wanted = [&at](int first) {
      return int32_t((at[size_t(first)].handle ? 1 : 0) | (at[size_t(first) + 1].handle ? 2 : 0));
    };
    if (forward_) {
      Arguments args;
      add_inputs(args, at);
      args.add(at_place(at, out));
      args.add(at_place(at, out + 1));
      args.add(problem);
      args.add(wanted(out));
      return forward_->launch(stream, blocks_of(queries_, tile_.queries, by_heads), args);
    }
    if (at[size_t(out)].handle != nullptr) {
      Arguments args;
      add_inputs(args, at);
      args.add(at_place(at, out));
      args.add(problem);
      to_queries_->launch(stream, blocks_of(queries_, tile_.queries, by_heads), args);
    }
    if (wanted(out + 1) != 0) {
      Arguments args;
      add_inputs(args, at);
      args.add(at_place(at, out + 1));
      args.add(at_place(at, out + 2));
      args.add(problem);
      args.add(wanted(out + 1));
      to_keys_->launch(stream, blocks_of(keys_, tile_.keys, by_groups), args);
    }
  }

  Session& session_;
  const KernelCall call_;
  const Places places_;
  const int64_t lanes_, queries_, keys_, depth_, values_;
  Tile tile_ = {};
  std::unique_ptr<Kernel> forward_, to_queries_, to_keys_;
};

}  // namespace

std::unique_ptr<GpuExecutable> make_attention(Session& session, const KernelCall& call) {
  return std::make_unique<Attention>(session, call);
}

std::unique_ptr<GpuExecutable> make_attention_backward(Session& session, const KernelCall& call) {
  return std::make_unique<Attention>(session, call);
}

}  // namespace tessera::gpu
