// KernelIR → source text.
//
// The entry's arguments are the operands in their order (pointers to the first element), then
// `extent0` (64 bits) and `error`, a pointer to a 32-bit flag that becomes 1 when an indexed load
// meets an index out of range; that load then yields 0 and memory is not touched.
//
// Work is given out by groups, group_count() of them; unless `turns` says otherwise, a kernel walks
// on with the stride of the whole launch, so any smaller number is right too. What is folded is
// folded in an order that the text fixes, so results repeat bit by bit. docs/codegen.md shows texts
// and says why they look so.
//
// The text depends on key(ir), ir.name, the dialect and the options alone. Options are promises of
// the launcher about operands and extent0; the defaults promise nothing. A launcher renders the
// fastest text whose promises hold for the launch at hand:
//
//   RenderOptions options;
//   options.alignment = …;                               // of the operands it will pass
//   options.narrow_index = fits_narrow_index(ir, extent0);
//   options.split = split_count(ir, extent0, groups_wanted) > 1;
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tessera/codegen/dialect.h"
#include "tessera/kernel/kernel_ir.h"

namespace tessera {

struct RenderOptions {
  int max_group_size = 256;  // a power of two
  // Lanes that may share a row too long for the registers of max_group_size; a power of two.
  int max_row_group = 0;
  int64_t local_bytes = 0;  // of local memory that a group may take for its row
  // Groups that may share a row too long for the registers of one, where the dialect has clusters;
  // a power of two. 1: a row is one group's.
  int cluster_groups = 1;
  // Where a buffer is a handle that the host cannot add to: each operand is followed by an i64, the
  // element of its buffer that it starts at.
  bool operand_offsets = false;
  // Bytes: the address of every operand's first element is a multiple of it. From 16 on, neighbours
  // in memory are read and written 16 bytes at a time, and of 16 bytes that hold an element all may
  // be read.
  int alignment = 1;
  // Indices have 32 bits: fits_narrow_index() holds for every launch, which starts at most
  // group_count() groups.
  bool narrow_index = false;
  // Several groups share a row, for few long rows; REQUIRES can_split(ir). There are two entries
  // then. `entry` leaves partial results in a scratch buffer, `fold_entry` makes the outputs of
  // them; launch both, in this order, with the same arguments, to which two are added behind
  // `error`: a pointer to scratch_bytes() bytes, aligned to 8, and the number of splits (64 bits).
  bool split = false;
  // Of a map: each lane takes so many accesses and is done; all of them are under way before the
  // first store. At least group_count() groups must be started then. 0: lanes walk on.
  int turns = 0;
  // A joined kernel: a table of so many parts, from 2 on, or fewer. The arguments of its entries
  // are then that table, as part_table() writes it, and `error`; promises hold for every part.
  // REQUIRES a device whose addresses the host knows.
  int parts = 0;
};

// One set of operands of a joined kernel.
struct KernelPart {
  std::vector<void*> operands;  // addresses, in the order of the ir's
  int64_t extent0 = 0;
  int64_t groups = 1;  // of the launch; all parts together fewer than 2^31
  void* scratch = nullptr;
  int64_t splits = 1;
};
std::vector<uint64_t> part_table(std::span<const KernelPart> parts, int capacity, bool split);

struct RenderedKernel {
  std::string source;
  std::string entry;
  std::string fold_entry;   // empty: not split
  int group_size = 0;       // work items per group, fixed by the text
  int64_t per_group = 1;    // points of a map, or rows, that a group takes at a time
  int cluster = 1;          // groups that share a row: any multiple of it may be started
  int scratch_values = 0;   // of 8 bytes, for each row and split
  int64_t local_bytes = 0;  // that a launch asks for, where the dialect leaves it to the launch
  // A group asks for its next row while it works on one: no more groups than run at once.
  bool reads_ahead = false;

  // Groups that give every work item its points or every row its lanes; of a split kernel's
  // `entry`, of which any multiple of `splits` may be started, and of its `fold_entry`.
  int64_t group_count(const KernelIR& ir, int64_t extent0, int64_t splits = 1) const;
  int64_t fold_group_count(const KernelIR& ir, int64_t extent0) const;
  int64_t scratch_bytes(const KernelIR& ir, int64_t extent0, int64_t splits) const;
};

// REQUIRES: verify(ir) is empty.
RenderedKernel render(const KernelIR& ir, const Dialect& dialect,
                      const RenderOptions& options = {});

// Whether indices of 32 bits reach every point and element of a launch.
bool fits_narrow_index(const KernelIR& ir, int64_t extent0);

// Whether a kernel's rows can be shared by groups: it folds once, and no element is stored
// behind that.
bool can_split(const KernelIR& ir);

// Into how many parts to split the rows so that about `groups_wanted` groups run (a few times what
// the device runs at once) and none gets too little to do: kSplitPoints, and where there would be
// more than a quarter of the groups wanted, `points`. 1: not at all.
inline constexpr int64_t kSplitPoints = 4096;  // fewer cost more by a second launch than they save
int64_t split_count(const KernelIR& ir, int64_t extent0, int64_t groups_wanted,
                    int64_t points = kSplitPoints);

}  // namespace tessera
