// What every kernel of attention needs of its call; see attention_text.h.
#pragma once

#include <span>

#include "tessera/backend/gpu/named_kernel.h"
#include "tessera/base/attention_options.h"

namespace tessera::gpu {

// Strides of an operand; its last ones are 0 where it has fewer axes.
struct AttentionStrides {
  int64_t at[4] = {};
};

// The argument of the kernels, T its compute type.
template <class T>
struct AttentionProblem {
  int64_t batch, heads, groups, queries, keys, options;
  AttentionStrides q, k, v, mask, lengths, g, y, lse, dq, dk, dv;
  T scale, kept_scale;
  float keep;
};

// A call of attention or attention_backward: where its operands are.
class AttentionCall {
 public:
  explicit AttentionCall(const KernelCall& call);  // throws where operands are missing

  const KernelCall& call() const { return call_; }
  bool is_backward() const { return q_ == 1; }
  DType dtype() const { return call_.operands[size_t(q_)].dtype; }
  int64_t options() const { return call_.attrs.axis; }

  const View& q() const { return view(q_); }
  const View& k() const { return view(q_ + 1); }
  const View& v() const { return view(q_ + 2); }
  const View& g() const { return view(0); }  // backward only
  const View& y() const { return view(is_backward() ? 4 : outputs_); }
  // backward only: dq, dk, dv
  const View& gradient(int i) const { return view(outputs_ + i); }
  int first_output() const { return outputs_; }

  template <class T>
  AttentionProblem<T> problem() const;

  // All arguments of a kernel of attention: operands, problem, and which outputs are wanted.
  template <class T>
  Arguments forward_arguments(std::span<const BufferRef> at) const;
  // Everything before the outputs.
  void add_inputs(Arguments& args, std::span<const BufferRef> at) const;
  void add_operand(Arguments& args, std::span<const BufferRef> at, int i) const;

  // `text` behind the words that all these kernels share, its own words replaced.
  std::string source(const Session& session, std::string_view text, Replacements words) const;

 private:
  const View& view(int i) const { return call_.operands[size_t(i)].view; }

  const KernelCall call_;
  int q_, mask_ = -1, lengths_ = -1, key_ = -1, outputs_;
};

// Which of two neighbouring outputs have a buffer: bits 0 and 1.
int32_t wanted_outputs(std::span<const BufferRef> at, int first);

}  // namespace tessera::gpu
