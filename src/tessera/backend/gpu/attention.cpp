// attention and attention_backward, one tile of scores at a time: see attention_text.h.
#include "tessera/backend/gpu/attention.h"

#include <algorithm>

#include "tessera/backend/gpu/attention_text.h"
#include "tessera/codegen/text.h"

namespace tessera::gpu {

namespace {

constexpr int64_t kLanes = 64;
constexpr int64_t kLocalBytes = 32768;  // more would leave a compute unit one group at a time

struct Tile {
  int64_t queries, keys;
};
constexpr Tile kTiles[] = {{16, 32}, {16, 16}, {8, 16}, {8, 8}, {4, 4}, {2, 2}, {1, 1}};

class Attention : public GpuExecutable {
 public:
  Attention(Session& session, const KernelCall& call)
      : session_(session),
        call_(call),
        lanes_(group_size(session, kLanes)),
        queries_(call_.q().shape[2]),
        keys_(call_.k().shape[2]),
        depth_(call_.q().shape[3]),
        values_(call_.v().shape[3]) {
    for (const View* view : {&call_.q(), &call_.k(), &call_.v()}) {
      TESSERA_ASSERT(!view->shape.contains(0));
    }
    choose_tile();
    if (call_.is_backward()) {
      to_queries_ = kernel(kAttentionQueries, "tessera_attention_queries");
      to_keys_ = kernel(kAttentionKeys, "tessera_attention_keys");
    } else {
      forward_ = kernel(kAttentionForward, "tessera_attention");
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
  // Numbers of the compute type in local memory, by the declarations of the kernels.
  int64_t local_elements(const Tile& t) const {
    const int64_t d = depth_, e = values_, scores = t.queries * t.keys;
    if (!call_.is_backward()) {
      return t.queries * (d + e + 3) + t.keys * std::max(d, e) + scores;
    }
    return t.queries * (d + e + 2 + d) + 2 * t.keys * (d + e) + 2 * scores;
  }

  void choose_tile() {
    const int64_t size = size_of(compute_type(call_.dtype()));
    const int64_t local = session_.device().local_bytes;
    for (const int64_t room : {std::min(kLocalBytes, local), local}) {
      for (const Tile& tile : kTiles) {
        tile_ = tile;
        if (local_elements(tile) * size <= room) return;
      }
    }
    fail(call_.call().kernel, ": heads of ", depth_, " and ", values_, " columns need ",
         local_elements(tile_) * size, " bytes of local memory, ", session_.device().name, " has ",
         local);
  }

  std::unique_ptr<Kernel> kernel(std::string_view text, const char* entry) const {
    return session_.build(
        call_.call().kernel,
        call_.source(
            session_, cat(kAttentionTiles, text),
            {{"$bq", cat(tile_.queries)}, {"$bk", cat(tile_.keys)}, {"$lanes", cat(lanes_)}}),
        entry);
  }

  Range blocks_of(int64_t extent, int64_t block, int64_t matrices) const {
    Range range;
    range.group[0] = size_t(lanes_);
    range.groups[0] = size_t((extent + block - 1) / block * matrices);
    return range;
  }

  template <class T>
  void launch_as(std::span<const BufferRef> at, const AttentionProblem<T>& problem,
                 Stream stream) const {
    const int out = call_.first_output();
    const int64_t by_heads = problem.batch * problem.heads;
    const int64_t by_groups = problem.batch * problem.groups;
    if (forward_) {
      return forward_->launch(stream, blocks_of(queries_, tile_.queries, by_heads),
                              call_.forward_arguments<T>(at));
    }
    if (at[size_t(out)].handle != nullptr) {
      Arguments args;
      call_.add_inputs(args, at);
      call_.add_operand(args, at, out);
      args.add(problem);
      to_queries_->launch(stream, blocks_of(queries_, tile_.queries, by_heads), args);
    }
    if (const int32_t wanted = wanted_outputs(at, out + 1); wanted != 0) {
      Arguments args;
      call_.add_inputs(args, at);
      call_.add_operand(args, at, out + 1);
      call_.add_operand(args, at, out + 2);
      args.add(problem);
      args.add(wanted);
      to_keys_->launch(stream, blocks_of(keys_, tile_.keys, by_groups), args);
    }
  }

  Session& session_;
  const AttentionCall call_;
  const int64_t lanes_, queries_, keys_, depth_, values_;
  Tile tile_ = {};
  std::unique_ptr<Kernel> forward_, to_queries_, to_keys_;
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
