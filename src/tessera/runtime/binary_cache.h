// Compiled kernels on disk, so that a program compiles them once and not in every run. Of use to
// backends whose kernels are compiled at run time: wait_turn(), find(), else note_compilation() of
// compile_notice.h, compile, and store().
//
// One file per binary, named by a hash of all that it depends on; docs/formats/binary_cache.md
// specifies it. Any number of threads and processes may use one folder: files appear by rename and
// never change. The cache never fails a program: what it cannot read or write is compiled again,
// with one warning per process and reason.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/io/descriptor.h"

namespace tessera {

// Everything that a compiled binary depends on.
struct BinaryKey {
  std::string_view source;
  std::string_view options;   // of the compiler
  std::string_view compiler;  // name and version
  std::string_view device;    // name and driver version
};

struct CacheInfo {
  std::string folder;  // empty: the cache is off
  int64_t entries = 0;
  int64_t bytes = 0;
  int64_t max_bytes = 0;
  std::optional<std::time_t> oldest, newest;  // last uses; absent where there are no entries
};

class BinaryCache {
 public:
  // An empty folder: the cache is off, finds nothing and stores nothing. The folder is made at the
  // first store.
  BinaryCache(std::string folder, int64_t max_bytes);
  ~BinaryCache();

  const std::string& folder() const;

  // Until the result goes, other threads and processes that use this folder wait for their turn at
  // an equal key: one of them compiles, the others find. Some drivers fail, too, where two
  // processes build one source at a time. Not waited for where the folder cannot be written.
  [[nodiscard]] Descriptor wait_turn(const BinaryKey& key);

  // The binary stored under an equal key; it counts as used now. A file that is not what was stored
  // is removed.
  std::optional<std::string> find(const BinaryKey& key);

  // Binaries used longest ago are removed until all fit again; one larger than the limit is not
  // kept.
  void store(const BinaryKey& key, std::string_view binary);

  // For a binary that was found and the driver refuses: removes it, with a warning.
  void drop(const BinaryKey& key, std::string_view reason);

  CacheInfo info() const;  // throws Error where the folder cannot be listed

  // Removes every binary; returns the bytes that were freed. Throws Error where that is refused.
  int64_t clear();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Where the cache of a process is and how large it may get, from the environment's values (null:
// unset). TESSERA_CACHE_DIR names the folder, empty: off; else it is tessera/ in XDG_CACHE_HOME,
// else ~/.cache/tessera. TESSERA_CACHE_MAX_MB is the limit in MiB, 512 where that is unset; throws
// Error where it is no number from 1 to 1000000.
struct CacheSettings {
  std::string folder;
  int64_t max_bytes = 0;
};
CacheSettings cache_settings(const char* cache_dir, const char* xdg_cache_home, const char* home,
                             const char* max_mb);

// The cache of this process, by its environment at the first call.
BinaryCache& binary_cache();

}  // namespace tessera
