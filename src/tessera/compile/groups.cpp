#include "tessera/compile/groups.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace tessera {

Shape reduced_shape(const Shape& shape, const Dims& axes) {
  Shape result = shape;
  for (const int64_t axis : axes) result[int(axis)] = 1;
  return result;
}

bool is_addressed(Op op, size_t input) {
  switch (op) {
    case Op::pad:
    case Op::concat:
    case Op::uniform:
    case Op::dynamic_slice: return true;
    case Op::gather: return input == 0;
    default: return false;
  }
}

namespace {

// Elements of a row up to which a map joins the folds it reads: longer rows are better shared by
// many lanes, and would be read twice anyway. So are long ones where there are few.
constexpr int64_t kMaxSharedRow = 65536, kLongRow = 16384, kMinLongRows = 64;
constexpr int kMaxVisits = 2000;  // of one search for a cycle; giving up means "do not fuse"

bool is_generated(Op op) {
  switch (info(op).kind) {
    case OpKind::scalar:
    case OpKind::reduce:
    case OpKind::assemble:
    case OpKind::index: return true;
    case OpKind::source: return op == Op::iota || op == Op::uniform;
    default: return false;
  }
}

// The view gives each element of `domain` the value of its row: the folded axes repeat.
bool is_row_broadcast(const View& view, const Shape& domain, const Dims& axes) {
  if (view.shape != domain || view.offset != 0) return false;
  const Dims strides = row_major_strides(reduced_shape(domain, axes));
  for (int i = 0; i < domain.rank(); ++i) {
    const int64_t expected = axes.contains(i) ? 0 : strides[i];
    if (domain[i] != 1 && view.strides[i] != expected) return false;
  }
  return true;
}

// What joining would make of a group.
struct Placement {
  Shape domain;
  Dims axes;
  bool row = false;     // the level of the instance
  bool demote = false;  // all present members become row level
};

// Instances are visited users first, so that each joins the kernel that needs it: values that only
// the backward pass reads are then computed there, and not stored by the forward pass.
class Grouper {
 public:
  Grouper(const Instances& instances, int64_t parameters)
      : list_(instances.list),
        point_times_(parameters >= int64_t(kPointTimes * kMaxGroupReads) ? kPointTimes : 1),
        users_(list_.size()),
        group_of_(list_.size(), -1),
        row_(list_.size(), 0) {
    for (size_t i = 0; i < list_.size(); ++i) {
      for (const Operand& operand : list_[i].inputs) users_[size_t(operand.inst)].push_back(int(i));
    }
  }

  Grouping run(bool fuse) {
    for (int i = int(list_.size()) - 1; i >= 0; --i) {
      const Instance& x = list_[size_t(i)];
      if (x.op == Op::leaf || x.op == Op::constant || is_empty(x)) continue;
      if (!fuse || !is_generated(x.op) || !join(i)) start_group(i);
    }
    if (fuse) merge_rows();
    return finish();
  }

 private:
  struct Build {
    Group group;
    int low = 0;     // the lowest member
    int height = 0;  // above every group that reads from it, so that searches know where to stop
    bool merged_away = false;
  };

  static bool is_empty(const Instance& x) {
    return std::all_of(x.types.begin(), x.types.end(),
                       [](const Type& t) { return numel(t.shape) == 0; });
  }

  Build& at(int g) { return builds_[size_t(g)]; }
  const Instance& inst(int i) const { return list_[size_t(i)]; }

  void start_group(int i) {
    const Instance& x = inst(i);
    Build build;
    build.group.members = {i};
    build.group.generated = is_generated(x.op);
    if (info(x.op).kind == OpKind::reduce) {
      build.group.domain = x.inputs[0].view.shape;
      build.group.axes = x.attrs.a;
      row_[size_t(i)] = 1;
    } else {
      build.group.domain = x.types[0].shape;
    }
    build.low = i;
    for (const int user : user_groups(i))
      build.height = std::max(build.height, at(user).height + 1);
    group_of_[size_t(i)] = int(builds_.size());
    builds_.push_back(std::move(build));
  }

  std::vector<int> user_groups(int i) const {
    std::vector<int> groups;
    for (const int user : users_[size_t(i)]) {
      const int g = group_of_[size_t(user)];
      if (g >= 0 && std::find(groups.begin(), groups.end(), g) == groups.end()) groups.push_back(g);
    }
    return groups;
  }

  bool join(int i) {
    std::vector<int> users = user_groups(i);
    // Earliest first: a later one may depend on it, never the other way round.
    std::sort(users.begin(), users.end(), [this](int a, int b) { return at(a).low < at(b).low; });
    for (const int g : users) {
      const auto placement = place(i, g);
      if (!placement || !has_room(i, g, *placement)) continue;
      const bool cycle =
          std::any_of(users.begin(), users.end(), [&](int h) { return h != g && reaches(h, g); });
      if (cycle) continue;
      apply(i, g, *placement);
      for (const int h : users) {
        if (h != g && !at(h).merged_away) try_merge(i, g, h);
      }
      return true;
    }
    return false;
  }

  // How instance i would stand in group g, given how g's members read it.
  std::optional<Placement> place(int i, int g) {
    const Group& group = at(g).group;
    if (!group.generated) return {};
    const Instance& x = inst(i);
    const Shape& shape = x.types[0].shape;
    Placement p{group.domain, group.axes};
    if (info(x.op).kind == OpKind::reduce) {
      const Shape& input = x.inputs[0].view.shape;
      p.row = true;
      p.axes = x.attrs.a;
      if (!group.axes.empty()) {
        if (group.domain != input || group.axes != x.attrs.a) return {};
      } else if (group.domain != input) {
        if (group.domain != shape) return {};
        p.domain = input;
        p.demote = true;
      }
    } else if (shape != group.domain) {
      if (group.axes.empty() || shape != reduced_shape(group.domain, group.axes)) return {};
      p.row = true;
    }
    for (const int user : group.members) {
      const bool user_row = p.demote || row_[size_t(user)];
      if (!readable(i, user, p, user_row)) return {};
    }
    return p;
  }

  bool readable(int i, int user, const Placement& p, bool user_row) const {
    const Instance& u = inst(user);
    const bool folds = info(u.op).kind == OpKind::reduce;
    for (size_t k = 0; k < u.inputs.size(); ++k) {
      const Operand& operand = u.inputs[k];
      if (operand.inst != i) continue;
      if (is_addressed(u.op, k)) return false;
      const bool whole = is_contiguous(operand.view) &&
                         operand.view.shape == inst(i).types[size_t(operand.out)].shape;
      if (folds) {
        if (p.row || !whole) return false;
      } else if (p.row == user_row) {
        if (!whole) return false;
      } else if (!p.row || !is_row_broadcast(operand.view, p.domain, p.axes)) {
        return false;
      }
    }
    return true;
  }

  // Reads of all members, whether from memory or from a register.
  size_t count_reads(const Group& group) const {
    size_t reads = 0;
    for (const int member : group.members) reads += inst(member).inputs.size();
    return reads;
  }

  bool fits(size_t members, size_t reads, const Shape& domain, const Dims& axes) const {
    const size_t times = axes.empty() && numel(domain) == 1 ? point_times_ : 1;
    return members <= times * kMaxGroupMembers && reads <= times * kMaxGroupReads;
  }
  bool has_room(int i, int g, const Placement& p) {
    const Group& group = at(g).group;
    const size_t reads = count_reads(group) + inst(i).inputs.size();
    return fits(group.members.size() + 1, reads, p.domain, p.axes);
  }
  bool fit_together(const Group& a, const Group& b) const {
    const size_t reads = count_reads(a) + count_reads(b);
    const Dims& axes = a.axes.empty() ? b.axes : a.axes;
    return fits(a.members.size() + b.members.size(), reads, a.domain, axes);
  }

  void apply(int i, int g, const Placement& p) {
    Build& build = at(g);
    if (p.demote) {
      for (const int member : build.group.members) row_[size_t(member)] = 1;
    }
    build.group.domain = p.domain;
    build.group.axes = p.axes;
    build.group.members.push_back(i);
    build.low = std::min(build.low, i);
    row_[size_t(i)] = p.row;
    group_of_[size_t(i)] = g;
    for (const int user : user_groups(i)) {
      if (user != g) raise(g, at(user).height + 1);
    }
  }

  // Lifts a group to at least `height`, and what feeds it above it.
  void raise(int g, int height) {
    std::vector<std::pair<int, int>> work{{g, height}};
    while (!work.empty()) {
      const auto [group, wanted] = work.back();
      work.pop_back();
      if (at(group).height >= wanted) continue;
      at(group).height = wanted;
      for (const int member : at(group).group.members) {
        for (const Operand& operand : inst(member).inputs) {
          const int feeder = group_of_[size_t(operand.inst)];
          if (feeder >= 0 && feeder != group) work.emplace_back(feeder, wanted + 1);
        }
      }
    }
  }

  // Two kernels that read the same value over the same domain become one.
  void try_merge(int i, int g, int h) {
    Group &a = at(g).group, &b = at(h).group;
    if (!b.generated || a.domain != b.domain) return;
    if (a.axes != b.axes && !a.axes.empty() && !b.axes.empty()) return;
    if (!fit_together(a, b)) return;
    const Placement p{a.domain, a.axes.empty() ? b.axes : a.axes, bool(row_[size_t(i)]), false};
    for (const int user : b.members) {
      if (!readable(i, user, p, row_[size_t(user)])) return;
    }
    // The step from i itself becomes a register.
    if (reaches(g, h, i) || reaches(h, g)) return;
    absorb(g, h, p.axes);
  }

  void absorb(int g, int h, const Dims& axes) {
    Group &a = at(g).group, &b = at(h).group;
    a.axes = axes;
    for (const int member : b.members) group_of_[size_t(member)] = g;
    a.members.insert(a.members.end(), b.members.begin(), b.members.end());
    b.members.clear();
    at(g).low = std::min(at(g).low, at(h).low);
    at(h).merged_away = true;
    const int height = std::max(at(g).height, at(h).height);
    at(g).height = -1;  // so that what feeds either part is looked at again
    raise(g, height);
  }

  // What a row's folds lead to may have passed through more row-level steps before elements read it
  // (a norm: the root of a mean). Such a map joins the kernel of its folds.
  void merge_rows() {
    for (int h = int(builds_.size()) - 1; h >= 0; --h) {
      if (at(h).merged_away || !at(h).group.generated || at(h).group.axes.empty()) continue;
      std::vector<int> users;
      for (const int member : at(h).group.members) {
        for (const int g : user_groups(member)) {
          if (g != h && std::find(users.begin(), users.end(), g) == users.end()) users.push_back(g);
        }
      }
      for (const int g : users) {
        if (!can_merge_rows(g, h, users)) continue;
        absorb(g, h, Dims(at(h).group.axes));
        break;
      }
    }
  }

  // Whether group g can take in group h, some of whose rows it reads.
  bool can_merge_rows(int g, int h, const std::vector<int>& users) {
    const Group &a = at(g).group, &b = at(h).group;
    if (!a.generated || a.domain != b.domain || !(a.axes.empty() || a.axes == b.axes)) return false;
    if (!fit_together(a, b)) return false;
    const int64_t rows = std::max<int64_t>(1, numel(reduced_shape(b.domain, b.axes)));
    const int64_t longest = rows < kMinLongRows ? kLongRow : kMaxSharedRow;
    if (numel(b.domain) > longest * rows) return false;
    for (const int member : b.members) {
      const Placement p{b.domain, b.axes, bool(row_[size_t(member)]), false};
      for (const int user : a.members) {
        if (!readable(member, user, p, row_[size_t(user)])) return false;
      }
    }
    return std::none_of(users.begin(), users.end(),
                        [&](int other) { return other != g && reaches(other, g); });
  }

  // Whether some path leads from group `from` to group `to`, other than the one step from instance
  // `except`; gives up with "yes". Heights fall along every path.
  bool reaches(int from, int to, int except = -1) {
    std::unordered_set<int> seen{from};
    std::vector<int> stack{from};
    int visits = 0;
    while (!stack.empty()) {
      const int g = stack.back();
      stack.pop_back();
      for (const int member : at(g).group.members) {
        for (const int user : users_[size_t(member)]) {
          const int next = group_of_[size_t(user)];
          if (next < 0 || (member == except && next == to)) continue;
          if (next == to) return true;
          if (at(next).height <= at(to).height || !seen.insert(next).second) continue;
          if (++visits > kMaxVisits) return true;
          stack.push_back(next);
        }
      }
    }
    return false;
  }

  // Groups in an order in which each comes after those it reads from.
  Grouping finish() {
    Grouping result;
    result.row = std::move(row_);
    std::vector<int> missing(builds_.size(), 0);
    std::vector<std::vector<int>> successors(builds_.size());
    for (size_t i = 0; i < list_.size(); ++i) {
      const int to = group_of_[i];
      if (to < 0) continue;
      for (const Operand& operand : list_[i].inputs) {
        const int from = group_of_[size_t(operand.inst)];
        if (from < 0 || from == to) continue;
        successors[size_t(from)].push_back(to);
        ++missing[size_t(to)];
      }
    }
    auto later = [this](int a, int b) { return at(a).low > at(b).low; };
    std::vector<int> ready;  // a heap: lowest instance first
    for (size_t g = 0; g < builds_.size(); ++g) {
      if (!builds_[g].merged_away && missing[g] == 0) ready.push_back(int(g));
    }
    std::make_heap(ready.begin(), ready.end(), later);
    std::vector<int> position(builds_.size(), -1);
    while (!ready.empty()) {
      std::pop_heap(ready.begin(), ready.end(), later);
      const int g = ready.back();
      ready.pop_back();
      position[size_t(g)] = int(result.groups.size());
      result.groups.push_back(std::move(at(g).group));
      std::vector<int>& members = result.groups.back().members;
      std::sort(members.begin(), members.end());
      for (const int next : successors[size_t(g)]) {
        if (--missing[size_t(next)] > 0) continue;
        ready.push_back(next);
        std::push_heap(ready.begin(), ready.end(), later);
      }
    }
    result.group_of.resize(list_.size(), -1);
    for (size_t i = 0; i < list_.size(); ++i) {
      if (group_of_[i] < 0) continue;
      result.group_of[i] = position[size_t(group_of_[i])];
      TESSERA_ASSERT(result.group_of[i] >= 0);  // else the groups form a cycle
    }
    return result;
  }

  const std::vector<Instance>& list_;
  const size_t point_times_;
  std::vector<std::vector<int>> users_;
  std::vector<int> group_of_;
  std::vector<char> row_;
  std::vector<Build> builds_;
};

}  // namespace

Grouping group_instances(const Instances& instances, bool fuse, int64_t parameters) {
  return Grouper(instances, parameters).run(fuse);
}

}  // namespace tessera
