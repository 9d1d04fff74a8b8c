#include "tessera/graph/node.h"

#include <array>
#include <bit>
#include <mutex>
#include <unordered_map>

#include "tessera/graph/infer.h"
#include "tessera/graph/scope.h"

namespace tessera {

namespace {

constexpr size_t kShards = 64;

struct Shard {
  std::mutex mutex;
  std::unordered_multimap<uint64_t, Node*> nodes;  // weak: a node removes itself when it dies
};

// Never destroyed: nodes held by other statics may outlive any order of destruction we could pick.
std::array<Shard, kShards>& shards() {
  static auto* instance = new std::array<Shard, kShards>;
  return *instance;
}

std::array<std::mutex, kShards>& slot_locks() {
  static auto* instance = new std::array<std::mutex, kShards>;
  return *instance;
}

std::mutex& slot_lock(const Node* node) {
  return slot_locks()[(reinterpret_cast<uintptr_t>(node) >> 6) % kShards];
}

std::atomic<uint64_t> next_id{1};
std::atomic<int64_t> live{0};

void mix(uint64_t& hash, uint64_t word) {
  hash = (std::rotl(hash, 23) ^ word) * 0x9E3779B97F4A7C15u;
}

void mix(uint64_t& hash, const Dims& dims) {
  mix(hash, static_cast<uint64_t>(dims.rank()));
  for (const int64_t d : dims) mix(hash, static_cast<uint64_t>(d));
}

uint64_t hash_node(Op op, std::span<const Value> inputs, const Attrs& attrs) {
  uint64_t hash = static_cast<uint64_t>(op) + 1;
  for (const Value& v : inputs) {
    mix(hash, v.node->id);
    mix(hash, static_cast<uint64_t>(v.out));
  }
  mix(hash, attrs.a);
  mix(hash, attrs.b);
  mix(hash, attrs.c);
  mix(hash, static_cast<uint64_t>(attrs.axis));
  mix(hash, attrs.bits);
  mix(hash, static_cast<uint64_t>(attrs.dtype));
  return hash ^ (hash >> 29);
}

}  // namespace

struct NodeFactory {
  static NodePtr create(Op op, std::vector<Value> inputs, Attrs attrs, std::vector<Type> types,
                        uint64_t hash, std::shared_ptr<const VjpFunction> vjp) {
    return NodePtr(new Node(op, std::move(inputs), attrs, std::move(types), hash, std::move(vjp)));
  }

  // Takes a reference unless the node is already dying.
  static bool try_reference(Node* node) {
    int64_t n = node->references_.load(std::memory_order_relaxed);
    while (n > 0) {
      if (node->references_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }

  static NodePtr find(Shard& shard, uint64_t hash, Op op, const std::vector<Value>& inputs,
                      const Attrs& attrs) {
    const auto [first, last] = shard.nodes.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      Node* node = it->second;
      if (node->op == op && node->attrs == attrs && node->inputs_ == inputs &&
          try_reference(node)) {
        return NodePtr(node);
      }
    }
    return {};
  }

  static void forget(Node* node) {
    Shard& shard = shards()[node->hash % kShards];
    const std::lock_guard lock(shard.mutex);
    const auto [first, last] = shard.nodes.equal_range(node->hash);
    for (auto it = first; it != last; ++it) {
      if (it->second == node) {
        shard.nodes.erase(it);
        return;
      }
    }
  }

  // Drops a node whose count reached zero, and what only it held, with a list instead of the stack.
  static void destroy(Node* node) {
    thread_local std::vector<Node*>* pending = nullptr;
    if (pending != nullptr) {
      pending->push_back(node);
      return;
    }
    std::vector<Node*> list{node};
    pending = &list;
    while (!list.empty()) {
      Node* dying = list.back();
      list.pop_back();
      forget(dying);
      delete dying;  // its inputs' counts may reach zero and come back here through `pending`
      live.fetch_sub(1, std::memory_order_relaxed);
    }
    pending = nullptr;
  }

  static void release(Node* node) {
    if (node->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(node);
  }
};

NodePtr::NodePtr(const NodePtr& other) : node_(other.node_) {
  if (node_ != nullptr) node_->references_.fetch_add(1, std::memory_order_relaxed);
}

NodePtr::~NodePtr() {
  if (node_ != nullptr) NodeFactory::release(node_);
}

Node::Node(Op op_, std::vector<Value> inputs, Attrs attrs_, std::vector<Type> types_,
           uint64_t hash_, std::shared_ptr<const VjpFunction> vjp_)
    : op(op_),
      scope(current_scope()),
      line(current_line()),
      id(next_id.fetch_add(1, std::memory_order_relaxed)),
      hash(hash_),
      attrs(attrs_),
      types(std::move(types_)),
      vjp(std::move(vjp_)),
      inputs_(std::move(inputs)) {
  live.fetch_add(1, std::memory_order_relaxed);
}

std::shared_ptr<Slot> Node::slot(int out) const {
  const std::lock_guard lock(slot_lock(this));
  return static_cast<size_t>(out) < slots_.size() ? slots_[static_cast<size_t>(out)] : nullptr;
}

void Node::set_slot(int out, std::shared_ptr<Slot> slot) {
  {
    const std::lock_guard lock(slot_lock(this));
    slots_.resize(types.size());
    slots_[static_cast<size_t>(out)].swap(slot);
  }
  // The old slot dies here, outside the lock: releasing its memory may take other locks.
}

NodePtr make_node(Op op, std::vector<Value> inputs, Attrs attrs,
                  std::shared_ptr<const VjpFunction> vjp) {
  const uint64_t hash = hash_node(op, inputs, attrs);
  Shard& shard = shards()[hash % kShards];
  {
    const std::lock_guard lock(shard.mutex);
    if (NodePtr found = NodeFactory::find(shard, hash, op, inputs, attrs)) return found;
  }
  std::vector<Type> types = with_origin([&] { return infer_types(op, inputs, attrs); });
  const NodePtr node =
      NodeFactory::create(op, inputs, attrs, std::move(types), hash, std::move(vjp));
  const std::lock_guard lock(shard.mutex);
  // Another thread may have built it meanwhile: theirs wins. Ours dies after the lock is released,
  // as it must: a dying node takes this lock.
  if (NodePtr found = NodeFactory::find(shard, hash, op, inputs, attrs)) return found;
  shard.nodes.emplace(hash, node.get());
  return node;
}

Value make_leaf(const Type& type) {
  Attrs attrs;
  attrs.a = type.shape;
  attrs.dtype = type.dtype;
  numel(type.shape);  // refuses what cannot be counted
  // Outside the intern table: nothing is equal to a leaf but itself.
  return {NodeFactory::create(Op::leaf, {}, attrs, {type}, 0, nullptr), 0};
}

int64_t live_nodes() { return live.load(std::memory_order_relaxed); }

int64_t byte_size(const Type& type) {
  constexpr int64_t kMost = int64_t{1}
                            << 56;  // no machine has it, and sums of such sizes still fit
  const int64_t n = numel(type.shape), size = size_of(type.dtype);
  if (n > kMost / size) fail("out of memory: a value of ", type, " has ", n, " elements");
  return n * size;
}

std::string to_string(const Type& type) { return cat(type.dtype, type.shape); }

std::vector<NodePtr> topological_order(std::span<const Value> outputs,
                                       const std::function<bool(const Node&)>& stop) {
  struct Frame {
    NodePtr node;
    size_t next;
  };
  std::vector<NodePtr> order;
  std::unordered_map<const Node*, bool> seen;
  std::vector<Frame> stack;
  auto visit_node = [&](const NodePtr& node) {
    if (!seen.emplace(node.get(), true).second) return;
    stack.push_back({node, stop && stop(*node) ? node->inputs().size() : 0});
  };
  for (const Value& output : outputs) {
    visit_node(output.node);
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next == top.node->inputs().size()) {
        order.push_back(std::move(top.node));
        stack.pop_back();
      } else {
        const NodePtr input = top.node->inputs()[top.next++].node;
        visit_node(input);
      }
    }
  }
  return order;
}

std::vector<NodePtr> topological_order(std::span<const Value> outputs) {
  return topological_order(outputs, nullptr);
}

}  // namespace tessera
