#include "tessera/tensor/profile.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "tessera/io/atomic_file.h"
#include "tessera/io/json.h"
#include "tessera/io/utf8.h"

namespace tessera {

namespace {

constexpr size_t kChunk = size_t{1} << 20;  // bytes gathered before they are written
constexpr int kFirstDevice = 1000;          // its track; threads of the host count from 1

const char* category(Profile::Kind kind) {
  switch (kind) {
    case Profile::Kind::kernel: return "kernel";
    case Profile::Kind::run: return "run";
    case Profile::Kind::compile: return "compile";
    case Profile::Kind::transfer: return "transfer";
    case Profile::Kind::trace: return "trace";
  }
  return "";
}

// Names come from users: any bytes, where JSON takes UTF-8 alone.
std::string valid_utf8(std::string text) {
  for (size_t at; (at = find_invalid_utf8(text)) != std::string::npos;) text[at] = '?';
  return text;
}

std::string quoted(const std::string& text) { return Json(valid_utf8(text)).dump(); }

// Nanoseconds as the format's microseconds.
std::string micros(int64_t nanoseconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03d", static_cast<long long>(nanoseconds / 1000),
                int(nanoseconds % 1000));
  return text;
}

class TraceWriter {
 public:
  TraceWriter(const Profile::Contents& contents, AtomicFile& file)
      : contents_(contents), file_(file) {}

  void write() {
    text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
    text_ += R"({"ph":"M","pid":1,"name":"process_name","args":{"name":"tessera"}})";
    for (int i = 0; i < contents_.threads; ++i) {
      name_track(i + 1, i == 0 ? "host" : cat("host, thread ", i + 1));
    }
    for (const Profile::Activity& activity : contents_.activities) describe(activity);
    for (const Profile::Event& event : contents_.events) add(event);
    text_ +=
        cat("\n],\"otherData\":", Json().set("events_left_out", contents_.dropped).dump(), "}\n");
    write_out();
  }

 private:
  struct Described {
    std::string head, args;  // of its events: what stands before the times, and behind
    int track = 0;           // of its device; 0: the host
  };
  struct DeviceTrack {
    int number;
    int64_t bytes = 0;  // the counter's last value
  };

  void name_track(int track, const std::string& name) {
    for (const auto& [what, args] :
         {std::pair("thread_name", Json().set("name", valid_utf8(name))),
          std::pair("thread_sort_index", Json().set("sort_index", track))}) {
      text_ += cat(",\n{\"ph\":\"M\",\"pid\":1,\"tid\":", track, ",\"name\":\"", what,
                   "\",\"args\":", args.dump(), "}");
    }
  }

  void describe(const Profile::Activity& activity) {
    Described described;
    if (!activity.device.empty()) {
      const auto [it, added] =
          devices_.emplace(activity.device, DeviceTrack{kFirstDevice + int(devices_.size())});
      if (added) name_track(it->second.number, activity.device);
      if (activity.kind == Profile::Kind::kernel) described.track = it->second.number;
    }
    described.head = cat(",\n{\"ph\":\"X\",\"pid\":1,\"name\":", quoted(activity.label),
                         ",\"cat\":\"", category(activity.kind), "\",\"args\":{");
    const std::pair<const char*, const std::string&> texts[] = {
        {"scope", activity.scope}, {"source", activity.place}, {"operands", activity.operands}};
    for (const auto& [name, value] : texts) {
      if (!value.empty()) described.args += cat("\"", name, "\":", quoted(value), ",");
    }
    if (activity.flops > 0) {
      described.args += cat("\"flops\":", int64_t(activity.flops), ",");
    }
    described_.push_back(std::move(described));
  }

  void add(const Profile::Event& event) {
    const Profile::Activity& activity = contents_.activities[size_t(event.activity)];
    const Described& described = described_[size_t(event.activity)];
    if (!activity.device.empty()) {
      // A kernel shows what is alive while it runs; with the end of its run the arena is empty.
      const bool is_run = activity.kind == Profile::Kind::run;
      count(activity.device, is_run ? event.begin + event.nanoseconds : event.begin,
            is_run ? 0 : activity.arena_bytes);
    }
    text_ += cat(described.head, described.args, "\"bytes\":", event.bytes,
                 "},\"tid\":", described.track != 0 ? described.track : event.thread + 1,
                 ",\"ts\":", micros(event.begin), ",\"dur\":", micros(event.nanoseconds), "}");
    if (text_.size() >= kChunk) write_out();
  }

  void count(const std::string& device, int64_t at, int64_t bytes) {
    DeviceTrack& track = devices_.at(device);
    if (track.bytes == bytes) return;
    track.bytes = bytes;
    text_ += cat(",\n{\"ph\":\"C\",\"pid\":1,\"name\":", quoted("arena of " + device),
                 ",\"ts\":", micros(at), ",\"args\":{\"bytes\":", bytes, "}}");
  }

  void write_out() {
    file_.write(std::as_bytes(std::span(text_)));
    text_.clear();
  }

  const Profile::Contents& contents_;
  AtomicFile& file_;
  std::string text_;
  std::vector<Described> described_;  // per activity
  std::map<std::string, DeviceTrack> devices_;
};

}  // namespace

ProfileGuard::ProfileGuard()
    : profile_(std::make_shared<Profile>()), outer_(set_active_profile(profile_)) {}

void ProfileGuard::stop() {
  if (stopped_) return;
  stopped_ = true;
  profile_->stop();
  set_active_profile(std::move(outer_));
}

void write_trace(const Profile& profile, const std::filesystem::path& path) {
  AtomicFile file(path);
  const Profile::Contents contents = profile.contents();
  TraceWriter(contents, file).write();
  file.commit();
}

}  // namespace tessera
