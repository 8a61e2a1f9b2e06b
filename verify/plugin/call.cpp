#include "indexpool/verify/plugin/call.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "indexpool/verify/checks/tally.hpp"
#include "indexpool/verify/plugin/fault.hpp"
#include "indexpool/verify/plugin/last_lines.hpp"
#include "indexpool/verify/verdict.hpp"

namespace indexpool::verify::plugin {
namespace {

// Elements of a buffer and the poison they held.
std::span<const std::byte> element(std::span<const std::byte> buffer, const Output& output,
                                   std::int64_t index) {
  const auto size = static_cast<std::size_t>(info(output.dtype).bytes);
  return buffer.subspan(static_cast<std::size_t>(index) * size, size);
}

bool is_all(std::span<const std::byte> bytes, std::byte value) {
  return std::ranges::all_of(bytes, [value](std::byte b) { return b == value; });
}

// "element 17, at [3, 2]".
std::string place_of(const Output& output, std::int64_t index) {
  std::string indices;
  std::int64_t rest = index;
  for (std::size_t axis = output.shape.size(); axis-- > 0;) {
    const std::int64_t size = output.shape[axis];
    indices = fmt::format("{}{}{}", rest % size, indices.empty() ? "" : ", ", indices);
    rest /= size;
  }
  return fmt::format("element {}, at [{}]", index, indices);
}

struct Found {
  const Request& request;
  const SharedMemory& memory;

  const Output& output(std::size_t index) const { return request.outputs[index]; }
  std::int64_t written(int call, std::size_t index) const {
    return memory.control().progress.written[call][index];
  }
  // Optional outputs may stay away, in both calls.
  bool given(std::size_t index) const {
    const Output& out = output(index);
    return out.present && !(out.optional && written(0, index) == -1 && written(1, index) == -1);
  }
  template <class Visit>
  void for_each_given(const Visit& visit) const {
    for (std::size_t i = 0; i < request.outputs.size(); ++i) {
      if (given(i)) visit(i, output(i));
    }
  }
  template <class Visit>
  void for_each_element(std::size_t index, const Visit& visit) const {
    const Output& out = output(index);
    const auto first = memory.output(0, index), second = memory.output(1, index);
    for (std::int64_t e = 0; e < out.elements(); ++e) {
      if (!out.ignored.empty() && out.ignored[static_cast<std::size_t>(e)] != 0) continue;
      visit(e, element(first, out, e), element(second, out, e));
    }
  }
};

Check check_sizes(const Found& found) {
  Tally tally("sizes");
  found.for_each_given([&](std::size_t i, const Output& output) {
    for (int call = 0; call < call_count; ++call) {
      const std::int64_t written = found.written(call, i);
      tally.compare(written == output.elements(), [&] {
        if (written == -1) {
          return fmt::format("`{}`: the count of elements was not set; set *{}.written to {}",
                             output.name, output.name, output.elements());
        }
        return fmt::format("`{}`: {} elements written, expected {} = {}{}", output.name, written,
                           output.elements(), to_string(output.shape),
                           written > output.elements() ? ", the capacity" : "");
      });
    }
  });
  return std::move(tally).finish();
}

bool unwritten(std::span<const std::byte> first, std::span<const std::byte> second) {
  return is_all(first, poison_of_call[0]) && is_all(second, poison_of_call[1]);
}

Check check_written(const Found& found) {
  Tally tally("written");
  found.for_each_given([&](std::size_t i, const Output& output) {
    found.for_each_element(i, [&](std::int64_t e, auto first, auto second) {
      tally.compare(!unwritten(first, second), [&] {
        return fmt::format("`{}`: {} was left unwritten", output.name, place_of(output, e));
      });
    });
  });
  return std::move(tally).finish();
}

Check check_rerun(const Found& found) {
  Tally tally("rerun");
  found.for_each_given([&](std::size_t i, const Output& output) {
    found.for_each_element(i, [&](std::int64_t e, auto first, auto second) {
      if (unwritten(first, second)) return;  // another check's finding
      tally.compare(std::ranges::equal(first, second), [&] {
        return fmt::format(
            "`{}`: {} is {} after the first call and {} after the second, of equal "
            "inputs",
            output.name, place_of(output, e), load_element(output.dtype, first.data(), 0),
            load_element(output.dtype, second.data(), 0));
      });
    });
  });
  return std::move(tally).finish();
}

// Which bytes of a guard changed, counted from the buffer's edge outwards.
std::string changed(std::span<const std::byte> slack, bool before) {
  std::size_t count = 0, farthest = 0;
  for (std::size_t i = 0; i < slack.size(); ++i) {
    const std::byte value = before ? slack[slack.size() - 1 - i] : slack[i];
    if (value == guard_byte) continue;
    ++count;
    farthest = i + 1;
  }
  return count == 0 ? std::string()
                    : fmt::format("{} changed, up to {} {} it", count_bytes(count),
                                  count_bytes(farthest), before ? "before" : "past the end of");
}

Check check_slack(const Found& found) {
  Tally tally("guards");
  for (std::size_t i = 0; i < found.request.outputs.size(); ++i) {
    const Output& output = found.output(i);
    if (!output.present) continue;
    for (int call = 0; call < call_count; ++call) {
      for (const bool before : {true, false}) {
        const std::string what = changed(found.memory.slack(call, i, before ? 0 : 1), before);
        tally.compare(what.empty(), [&] {
          return fmt::format("wrote outside `{}` ({}): {}", output.name,
                             count_bytes(found.memory.output(call, i).size()), what);
        });
      }
    }
  }
  return std::move(tally).finish();
}

Check check_threads(const Progress& progress) {
  Tally tally("threads");
  tally.compare(progress.threads_running == 0, [&] {
    return fmt::format(
        "{} of {} threads it started still ran a quarter of a second after its last "
        "call had returned; join them, or let them wait",
        progress.threads_running, progress.threads_left);
  });
  tally.compare(progress.processes_left == 0,
                [] { return "it left a process running; wait for what it starts"; });
  return std::move(tally).finish();
}

Check came_back() {
  Check check;
  check.name = "process";
  check.compared = call_count;
  return check;
}

}  // namespace

bool Called::judgeable() const {
  return !ended && std::ranges::none_of(checks, [](const Check& check) {
    return (check.name == "sizes" || check.name == "written") && check.status != Status::passed;
  });
}

Called call_plugin(const Request& request, const Runner& runner) {
  SharedMemory memory(request);
  Control& control = memory.control();
  control.data_limit_bytes = data_limit(runner.limits);
  control.cpu_limit_seconds = cpu_limit(runner.limits);
  const Ending ending = run_worker(runner.worker, memory.descriptor(), runner.limits);
  Called called;
  called.printed = ending.last_lines;
  called.ended = explain(request, control, memory.bytes(), ending, runner.limits);
  if (called.ended) return called;
  const Found found{request, memory};
  called.checks = {came_back(),        check_sizes(found), check_written(found),
                   check_slack(found), check_rerun(found), check_threads(control.progress)};
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    const auto bytes = found.given(i) ? memory.output(0, i) : std::span<const std::byte>();
    called.outputs.emplace_back(bytes.begin(), bytes.end());
  }
  return called;
}

Description describe_plugin(const std::string& library, const Runner& runner) {
  Request request;
  request.library = library;
  SharedMemory memory(request);
  Control& control = memory.control();
  control.data_limit_bytes = data_limit(runner.limits);
  control.cpu_limit_seconds = cpu_limit(runner.limits);
  const Ending ending = run_worker(runner.worker, memory.descriptor(), runner.limits);
  Description description;
  description.refused = explain(request, control, memory.bytes(), ending, runner.limits);
  if (description.refused) return description;
  const Progress& progress = control.progress;
  description.name = printable({progress.name, strnlen(progress.name, sizeof(progress.name))});
  description.offered = progress.offered;
  description.accumulation = progress.accumulation;
  return description;
}

}  // namespace indexpool::verify::plugin
