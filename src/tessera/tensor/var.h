// Var: a named slot with fixed storage, the only thing that changes: parameters, optimiser state,
// statistics, caches, random counters, learning rates.
//
// Assigning is lazy, as everything: the new value is computed, together with whatever else is
// pending, at the next read or flush(), and written in place. A handle to the old value then throws
// when it is read: "w: value was replaced by step 3, copy it first". A Var is a handle: copies
// share the slot, which is how weights are tied. One Var must not be used from two threads at once.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "tessera/tensor/tensor.h"

namespace tessera {

struct VarState;

class Var {
 public:
  Var() = default;  // no slot
  // Copies the initial value. Only a trainable Var gets gradients from backward().
  explicit Var(const Tensor& initial, std::string name = "", bool trainable = true);

  bool defined() const { return state_ != nullptr; }  // whether the handle is not empty
  const std::string& name() const;
  const Shape& shape() const;
  DType dtype() const;
  bool trainable() const;

  // The value as of the last assign.
  Tensor value() const;
  operator Tensor() const { return value(); }

  // Replaces the value by one of the same shape and dtype. A second assign without a read or flush
  // in between flushes first.
  void assign(const Tensor& value) const;

  // Overwrites the storage from host memory now; for what the host decides, such as a learning
  // rate. Never recompiles anything.
  void set(const Scalar& value) const;  // every element
  void set_bytes(DType dtype, const void* data) const;

  // The gradient that backward() left, or an empty tensor.
  Tensor grad() const;
  // Of the Var's type or of its compute type, f32 for half types; empty: none.
  void set_grad(const Tensor& grad) const;

  // What a step is made of, changed from outside of one: compiled functions trace anew. Not while a
  // function is being compiled.
  void set_trainable(bool trainable) const;
  // The value cast to another type, or copied to another device, in storage of its own; the
  // gradient is forgotten, and what was computed from the Var before must have been read.
  void convert(DType dtype) const;
  void move(Device device) const;

  bool same_slot(const Var& other) const { return state_ == other.state_; }
  const std::shared_ptr<VarState>& state() const { return state_; }

 private:
  void replace(const Tensor& value) const;

  std::shared_ptr<VarState> state_;
};

// Has `value` computed with the next flush at the latest, so that it can still be read when a step
// has replaced what it was computed from. backward() does this for its loss. Nothing to do in a
// trace.
void keep_readable(const Tensor& value);

// Computes and writes what assigns and keep_readable() have left pending in this thread. Inside a
// function being compiled it does nothing: the assigns become part of the step.
void flush();

}  // namespace tessera
