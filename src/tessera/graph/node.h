// Node: one operation of the graph; Value: one of its outputs.
//
// Nodes are immutable and interned: building the same operation on the same values twice gives the
// same node, for as long as someone holds it. Building, sharing and dropping nodes is thread safe.
// A graph of any depth is destroyed without recursion.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/dtype.h"
#include "tessera/base/shape.h"
#include "tessera/graph/op.h"
#include "tessera/graph/scope.h"

namespace tessera {

struct Type {
  DType dtype = DType::f32;
  Shape shape;

  bool operator==(const Type&) const = default;
};
std::string to_string(const Type& type);  // "f32(2, 3)"

// Of a row-major array. Throws where no memory could hold it: only a view can be that large.
int64_t byte_size(const Type& type);

// What an op needs beside its inputs; graph/ops.def says which field means what.
struct Attrs {
  Dims a, b, c;
  int64_t axis = 0;
  uint64_t bits = 0;
  DType dtype = DType::f32;

  bool operator==(const Attrs&) const = default;
};

class Node;

// Shared ownership of a node (an intrusive count).
class NodePtr {
 public:
  NodePtr() = default;
  explicit NodePtr(Node* adopted) : node_(adopted) {}
  NodePtr(const NodePtr& other);
  NodePtr(NodePtr&& other) noexcept : node_(other.node_) { other.node_ = nullptr; }
  NodePtr& operator=(NodePtr other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~NodePtr();

  Node* get() const { return node_; }
  Node* operator->() const { return node_; }
  Node& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }
  bool operator==(const NodePtr&) const = default;

 private:
  Node* node_ = nullptr;
};

struct Value {
  NodePtr node;
  int out = 0;

  const Type& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  explicit operator bool() const { return bool(node); }
  bool operator==(const Value&) const = default;
};

// An evaluated value, kept by the tensor layer; outside the node's identity.
class Slot {
 public:
  virtual ~Slot() = default;
};

// The backward function of a custom_vjp node: (inputs, outputs, output gradients) -> gradients of
// the inputs; an empty Value stands for no gradient.
using VjpFunction = std::function<std::vector<Value>(
    const std::vector<Value>&, const std::vector<Value>&, const std::vector<Value>&)>;

class Node {
 public:
  const Op op;
  const uint32_t scope;  // where it was first built: graph/scope.h
  const SourceLine line;
  const uint64_t id;  // grows with creation
  const uint64_t hash;
  const Attrs attrs;
  const std::vector<Type> types;                 // of the outputs
  const std::shared_ptr<const VjpFunction> vjp;  // custom_vjp only
  const std::vector<Value>& inputs() const { return inputs_; }

  std::shared_ptr<Slot> slot(int out) const;
  void set_slot(int out, std::shared_ptr<Slot> slot);

 private:
  friend class NodePtr;
  friend struct NodeFactory;
  Node(Op op_, std::vector<Value> inputs, Attrs attrs_, std::vector<Type> types_, uint64_t hash_,
       std::shared_ptr<const VjpFunction> vjp_);

  std::vector<Value> inputs_;
  std::vector<std::shared_ptr<Slot>> slots_;  // guarded by a lock chosen by the node's address
  std::atomic<int64_t> references_{1};
};

inline const Type& Value::type() const { return node->types[static_cast<size_t>(out)]; }

// The node of this operation, new or found. Infers and checks types (graph/infer.h); throws Error
// with the op's name and the scope.
NodePtr make_node(Op op, std::vector<Value> inputs, Attrs attrs = {},
                  std::shared_ptr<const VjpFunction> vjp = nullptr);

// A fresh leaf: never equal to another.
Value make_leaf(const Type& type);

// Nodes alive in the process.
int64_t live_nodes();

// All nodes the outputs need, inputs before users; `stop(node)` true means: list it, do not
// descend.
std::vector<NodePtr> topological_order(std::span<const Value> outputs);
std::vector<NodePtr> topological_order(std::span<const Value> outputs,
                                       const std::function<bool(const Node&)>& stop);

}  // namespace tessera

template <>
struct std::hash<tessera::Value> {
  size_t operator()(const tessera::Value& v) const noexcept {
    return std::hash<const void*>()(v.node.get()) * 31 + static_cast<size_t>(v.out);
  }
};
