// From how a worker ended to words: what happened, where, and in which call.
#include <algorithm>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "indexpool/verify/plugin/call.hpp"
#include "indexpool/verify/plugin/fault.hpp"
#include "indexpool/verify/plugin/last_lines.hpp"
#include "indexpool/verify/verdict.hpp"

namespace indexpool::verify::plugin {
namespace {

template <std::size_t Size>
std::string text_of(const char (&text)[Size]) {
  return printable({text, strnlen(text, Size)});
}

// "in its first call".
std::string when(const Progress& progress) {
  switch (progress.stage.load()) {
    case Stage::starting:
      return "before it was loaded";
    case Stage::loading:
      return "while it was loaded (a constructor of a static object?)";
    case Stage::checking:
      return "in indexpool_plugin_abi or indexpool_plugin_table";
    case Stage::calling:
      return progress.call.load() == 0 ? "in its first call"
                                       : "in its second call, with the same inputs";
    case Stage::lingering:
      return "after its calls had returned, by a thread it left behind";
    case Stage::finished:
      break;
  }
  return "after its last call";
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

std::string signal_text(const Request& request, const Control& control, std::uint64_t shared_bytes,
                        int signal) {
  const Progress& progress = control.progress;
  std::string text = signal_name(signal) + " " + when(progress);
  if (signal == SIGXCPU) return text + ": it used up its processor time (--time-limit)";
  if (signal == SIGABRT) return text + ": it called abort, or an exception or assertion ended it";
  if (signal == SIGKILL) return text + ": killed from outside (out of memory?)";
  if (signal == progress.signal)
    return text + ": " + describe_fault(request, control, shared_bytes);
  return text;
}

std::string bytes_text(std::int64_t bytes) {
  const std::int64_t mebi = bytes >> 20;
  return mebi << 20 == bytes ? fmt::format("{} MiB", mebi) : fmt::format("{} bytes", bytes);
}

std::string load_text(const Request& request, const Progress& progress) {
  switch (progress.load) {
    case LoadFault::none:
      break;
    case LoadFault::not_loaded:
      return "could not be loaded: " + text_of(progress.text);
    case LoadFault::no_symbol:
      return fmt::format(
          "exports no {}; define it as indexpool/verify/plugin.h declares it "
          "(extern \"C\", not hidden)",
          text_of(progress.text));
    case LoadFault::wrong_abi:
      return fmt::format(
          "was built for plugin ABI {}, this program has {}; build it again with the "
          "plugin.h that came with this program",
          progress.abi, INDEXPOOL_PLUGIN_ABI);
    case LoadFault::no_table:
      return "indexpool_plugin_table returned a null pointer";
    case LoadFault::not_offered:
      return fmt::format("no longer offers operation {}: its table differs from process to process",
                         static_cast<int>(request.operation));
  }
  return {};
}

// Returned, but not with success.
std::optional<Verdict> returned(const Progress& progress) {
  for (int call = 0; call < call_count; ++call) {
    const std::int32_t value = progress.returned[call];
    if (value == INDEXPOOL_OK) continue;
    if (value == INDEXPOOL_UNSUPPORTED && call == 0) {
      return refuse(Status::unsupported, "the plugin does not take this problem");
    }
    return refuse(Status::error, fmt::format("returned error code {} from its {} call", value,
                                             call == 0 ? "first" : "second"));
  }
  return std::nullopt;
}

std::string ending_text(const Request& request, const Control& control, std::uint64_t shared_bytes,
                        const Ending& ending, const PluginLimits& limits) {
  const Progress& progress = control.progress;
  switch (ending.how) {
    case Ending::How::out_of_time:
      return fmt::format("still ran after {} s, {}, and was killed (--time-limit)", limits.seconds,
                         when(progress));
    case Ending::How::out_of_memory:
      return fmt::format("used more than {} of memory {} and was killed (--memory-limit)",
                         bytes_text(limits.memory_bytes), when(progress));
    case Ending::How::printed_too_much:
      return fmt::format("printed more than {} {} and was killed", bytes_text(limits.printed_bytes),
                         when(progress));
    case Ending::How::signalled:
      return signal_text(request, control, shared_bytes, ending.code);
    case Ending::How::exited:
      break;
  }
  if (progress.threw != 0) {
    return fmt::format("threw {} {}; an operation reports errors by what it returns",
                       text_of(progress.text), when(progress));
  }
  if (progress.load != LoadFault::none) return load_text(request, progress);
  if (progress.stage.load() == Stage::finished) return {};
  return fmt::format("ended its process (exit status {}) {}", ending.code, when(progress));
}

}  // namespace

std::optional<Verdict> explain(const Request& request, const Control& control,
                               std::uint64_t shared_bytes, const Ending& ending,
                               const PluginLimits& limits) {
  std::string reason = ending_text(request, control, shared_bytes, ending, limits);
  std::optional<Verdict> verdict;
  if (reason.empty()) {
    verdict = returned(control.progress);
    if (!verdict || verdict->status == Status::unsupported) return verdict;
    reason = verdict->reason;
  }
  if (ending.resists) reason += "; it did not die of SIGKILL within 5 s and was left behind";
  if (!ending.last_lines.empty()) reason += "; it printed: " + ending.last_lines;
  verdict = refuse(Status::error, reason);
  verdict->checks.push_back({"process", Status::error, reason, 0, 0, 1});
  return verdict;
}

}  // namespace indexpool::verify::plugin
