#include "tessera/runtime/binary_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "tessera/base/log.h"
#include "tessera/io/atomic_file.h"
#include "tessera/io/checksum.h"
#include "tessera/io/sha256.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr uint32_t kVersion = 1;
constexpr std::string_view kSuffix = ".bin";
constexpr int64_t kNanoseconds = 1'000'000'000;
constexpr int64_t kAbandoned =
    3600 * kNanoseconds;  // a temporary file's age: its writer was killed

struct Header {
  char magic[8] = {'T', 'E', 'S', 'S', 'B', 'I', 'N', '\n'};
  uint32_t version = kVersion;
  uint32_t checksum = 0;  // CRC-32C of the binary
  uint64_t length = 0;    // bytes of the binary, which follow
  Digest key = {};
};
static_assert(sizeof(Header) == 56 && std::endian::native == std::endian::little,
              "the file holds the struct as it is");

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// The length goes first, so that no two keys are one text.
Digest digest_of(const BinaryKey& key) {
  Sha256 hash;
  const uint64_t version = kVersion;
  hash.add(std::as_bytes(std::span(&version, 1)));
  for (const std::string_view part : {key.source, key.options, key.compiler, key.device}) {
    const uint64_t length = part.size();
    hash.add(std::as_bytes(std::span(&length, 1)));
    hash.add(bytes_of(part));
  }
  return hash.finish();
}

int64_t nanoseconds(const timespec& time) { return time.tv_sec * kNanoseconds + time.tv_nsec; }

int64_t now() {
  timespec time = {};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return nanoseconds(time);
}

bool is_entry(const std::string& name) {
  return name.size() == 2 * sizeof(Digest) + kSuffix.size() && name.ends_with(kSuffix) &&
         name.find_first_not_of("0123456789abcdef") == 2 * sizeof(Digest);
}

bool is_temporary(const std::string& name) {
  return name.starts_with(".tessera-") && name.ends_with(".tmp");
}

struct File {
  fs::path path;
  int64_t bytes = 0;
  int64_t used = 0;  // nanoseconds
};

// The entries of the folder; none where it does not exist. Files that vanish meanwhile are left
// out. Removes what killed writers left behind.
std::vector<File> list(const std::string& folder) {
  std::vector<File> files;
  std::error_code code;
  fs::directory_iterator it(folder, code);
  for (; !code && it != fs::directory_iterator(); it.increment(code)) {
    const std::string name = it->path().filename().native();
    struct stat status = {};
    if (!(is_entry(name) || is_temporary(name)) || ::stat(it->path().c_str(), &status) != 0) {
      continue;
    }
    const int64_t used = nanoseconds(status.st_mtim);
    if (is_entry(name)) {
      files.push_back({it->path(), status.st_size, used});
    } else if (now() - used > kAbandoned) {
      ::unlink(it->path().c_str());
    }
  }
  if (code && code != std::errc::no_such_file_or_directory) {
    fail_system("cache: cannot list", folder, code.value());
  }
  return files;
}

int64_t total_bytes(const std::vector<File>& files) {
  int64_t total = 0;
  for (const File& file : files) total += file.bytes;
  return total;
}

// False where the file ends before `bytes` of it could be read.
bool read_exactly(const Descriptor& file, void* to, size_t bytes) {
  auto* p = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = ::read(file.get(), p, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n;
    bytes -= size_t(n);
  }
  return true;
}

// Fills `binary`, or returns what is wrong with the file. It is read, not mapped: a file that is
// shortened under a map would kill the process.
const char* read_entry(const Descriptor& file, const Digest& key, int64_t max_bytes,
                       std::string& binary) {
  const Header wanted;
  Header header;
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return "it is no file";
  if (!read_exactly(file, &header, sizeof(header))) return "it is cut short";
  if (std::memcmp(header.magic, wanted.magic, sizeof(header.magic)) != 0 ||
      header.version != wanted.version || header.key != key) {
    return "it is another file";
  }
  // Before the length is trusted with an allocation.
  if (status.st_size > max_bytes || uint64_t(status.st_size) - sizeof(header) != header.length) {
    return "its length differs";
  }
  binary.resize(header.length);
  if (!read_exactly(file, binary.data(), binary.size())) return "it is cut short";
  return crc32c(bytes_of(binary)) == header.checksum ? nullptr : "its checksum differs";
}

}  // namespace

struct BinaryCache::State {
  fs::path path_of(const Digest& digest) const {
    return fs::path(folder) / (to_hex(digest) + std::string(kSuffix));
  }

  void remove(const fs::path& path, std::string_view reason) {
    ::unlink(path.c_str());
    if (warned_of_damage.exchange(true)) return;
    log_warning("cache: removed '", path.native(), "', ", reason, "; compiling it again");
  }

  // Bytes were added: removes the files used longest ago where there are too many. To list the
  // folder at every store would be slow in a large one, so that is done after every 1/16 of the
  // limit; other processes may meanwhile add as much each.
  void make_room(int64_t added, const fs::path& kept) {
    const std::lock_guard lock(mutex);
    room -= added;
    if (room >= 0) return;
    std::vector<File> files = list(folder);
    int64_t total = total_bytes(files);
    if (total > max_bytes) {
      std::ranges::sort(files, {}, &File::used);
      for (const File& file : files) {
        if (total <= max_bytes - slack()) break;
        if (file.path == kept) continue;
        ::unlink(file.path.c_str());
        total -= file.bytes;
      }
    }
    room = std::min(max_bytes - total, slack());
  }

  int64_t slack() const { return max_bytes / 16; }

  std::string folder;
  int64_t max_bytes = 0;
  std::atomic<bool> warned_of_damage{false};
  std::atomic<bool> cannot_store{false};
  std::mutex mutex;
  int64_t room = 0;  // bytes that may be added before the folder is listed again
};

BinaryCache::BinaryCache(std::string folder, int64_t max_bytes) : state_(new State) {
  state_->folder = std::move(folder);
  state_->max_bytes = max_bytes;
}

BinaryCache::~BinaryCache() = default;

const std::string& BinaryCache::folder() const { return state_->folder; }

Descriptor BinaryCache::wait_turn(const BinaryKey& key) {
  if (state_->folder.empty()) return Descriptor(-1);
  std::error_code ignored;
  fs::create_directories(state_->folder, ignored);
  // 256 files for all keys: they stay behind.
  const fs::path path =
      fs::path(state_->folder) / cat("lock-", to_hex(digest_of(key)).substr(0, 2));
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  while (file.valid() && ::flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return file;
}

std::optional<std::string> BinaryCache::find(const BinaryKey& key) {
  if (state_->folder.empty()) return std::nullopt;
  const Digest digest = digest_of(key);
  const fs::path path = state_->path_of(digest);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return std::nullopt;
  std::string binary;
  if (const char* problem = read_entry(file, digest, state_->max_bytes, binary)) {
    state_->remove(path, problem);
    return std::nullopt;
  }
  ::futimens(file.get(), nullptr);  // used now; refused where the folder is somebody else's
  return binary;
}

void BinaryCache::store(const BinaryKey& key, std::string_view binary) {
  const auto bytes = int64_t(sizeof(Header) + binary.size());
  if (state_->folder.empty() || bytes > state_->max_bytes || state_->cannot_store) return;
  Header header;
  header.checksum = crc32c(bytes_of(binary));
  header.length = binary.size();
  header.key = digest_of(key);
  try {
    std::error_code code;
    fs::create_directories(state_->folder, code);
    if (code) fail_system("cache: cannot make", state_->folder, code.value());
    const fs::path path = state_->path_of(header.key);
    AtomicFile file(path);
    file.write(std::as_bytes(std::span(&header, 1)));
    file.write(bytes_of(binary));
    file.commit();
    state_->make_room(bytes, path);
  } catch (const Error& error) {
    if (state_->cannot_store.exchange(true)) return;
    log_warning(error.what(), "; compiled kernels are not kept");
  }
}

void BinaryCache::drop(const BinaryKey& key, std::string_view reason) {
  if (!state_->folder.empty()) state_->remove(state_->path_of(digest_of(key)), reason);
}

CacheInfo BinaryCache::info() const {
  CacheInfo info;
  info.folder = state_->folder;
  info.max_bytes = state_->max_bytes;
  if (info.folder.empty()) return info;
  const std::vector<File> files = list(info.folder);
  info.entries = int64_t(files.size());
  info.bytes = total_bytes(files);
  if (!files.empty()) {
    const auto [oldest, newest] = std::ranges::minmax_element(files, {}, &File::used);
    info.oldest = oldest->used / kNanoseconds;
    info.newest = newest->used / kNanoseconds;
  }
  return info;
}

int64_t BinaryCache::clear() {
  if (state_->folder.empty()) return 0;
  int64_t freed = 0;
  for (const File& file : list(state_->folder)) {
    if (::unlink(file.path.c_str()) == 0) {
      freed += file.bytes;
    } else if (errno != ENOENT) {  // another process was faster
      fail_system("cache: cannot remove", file.path, errno);
    }
  }
  return freed;
}

CacheSettings cache_settings(const char* cache_dir, const char* xdg_cache_home, const char* home,
                             const char* max_mb) {
  CacheSettings settings;
  const auto is_set = [](const char* value) { return value != nullptr && *value != '\0'; };
  if (cache_dir != nullptr) {
    settings.folder = cache_dir;
  } else if (is_set(xdg_cache_home) && *xdg_cache_home == '/') {  // others are to be ignored
    settings.folder = cat(xdg_cache_home, "/tessera");
  } else if (is_set(home)) {
    settings.folder = cat(home, "/.cache/tessera");
  }
  int64_t megabytes = 512;
  if (is_set(max_mb)) {
    const std::string_view text = max_mb;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), megabytes);
    const bool whole = code == std::errc() && end == text.data() + text.size();
    if (!whole || megabytes < 1 || megabytes > 1'000'000) {
      fail("TESSERA_CACHE_MAX_MB: expected a number from 1 to 1000000, got '", text, "'");
    }
  }
  settings.max_bytes = megabytes << 20;
  return settings;
}

BinaryCache& binary_cache() {
  // Never destroyed: kernels may still be compiled while objects of static storage go.
  static BinaryCache* const cache = [] {
    const auto value = [](const char* name) { return std::getenv(name); };
    CacheSettings settings = cache_settings(value("TESSERA_CACHE_DIR"), value("XDG_CACHE_HOME"),
                                            value("HOME"), value("TESSERA_CACHE_MAX_MB"));
    return new BinaryCache(std::move(settings.folder), settings.max_bytes);
  }();
  return *cache;
}

}  // namespace tessera
