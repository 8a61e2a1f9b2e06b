#include "indexpool/reports/cli/mutant_runs.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>

namespace indexpool::cli {
namespace {

// work(i) for i in [0, count), by `jobs` threads; the first exception is thrown here.
void for_each_index(std::size_t count, int jobs, const std::function<void(std::size_t)>& work,
                    const std::function<void(std::size_t)>& finished) {
  std::atomic<std::size_t> next = 0, done = 0;
  std::exception_ptr failure;
  std::mutex failing;
  const auto worker = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(failing);
        if (!failure) failure = std::current_exception();
      }
      ++done;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < jobs; ++i) threads.emplace_back(worker);
  while (done < count) {
    finished(done);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

using Setting = verify::MutantSetting;

std::map<Setting, verify::MutantRun> correct_runs(const std::vector<const verify::Mutant*>& chosen,
                                                  const MutantRunOptions& options) {
  std::map<Setting, verify::MutantRun> runs;
  if (!options.rules) return runs;
  for (const verify::Mutant* mutant : chosen) runs[Setting(*mutant)];
  std::vector<Setting> settings;
  for (const auto& [setting, run] : runs) settings.push_back(setting);
  std::vector<verify::MutantRun> found(settings.size());
  for_each_index(
      settings.size(), options.jobs,
      [&](std::size_t i) {
        found[i] = verify::run_unmutated(settings[i], {false, true});
      },
      [](std::size_t) {});
  for (std::size_t i = 0; i < settings.size(); ++i) runs[settings[i]] = std::move(found[i]);
  return runs;
}

}  // namespace

std::vector<TimedRun> run_mutants(const std::vector<const verify::Mutant*>& chosen,
                                  const verify::MutantModule& module,
                                  const MutantRunOptions& options,
                                  const std::function<void(const std::string&)>& progress) {
  const auto correct = correct_runs(chosen, options);
  std::vector<TimedRun> runs(chosen.size());
  const auto run_one = [&](std::size_t i) {
    const auto start = std::chrono::steady_clock::now();
    const verify::Mutant& mutant = *chosen[i];
    TimedRun& result = runs[i];
    result.mutant = &mutant;
    result.run =
        verify::run_mutant(mutant, module.code(mutant.id), {!options.quick, options.rules});
    if (options.rules) {
      result.rules = verify::judge_by_rules(mutant, result.run, correct.at(Setting(mutant)));
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    result.seconds = taken.count();
    result.run.observed.clear();
  };
  for_each_index(chosen.size(), std::max(1, options.jobs), run_one, [&](std::size_t done) {
    progress(fmt::format("{} of {} mutants", done, chosen.size()));
  });
  return runs;
}

}  // namespace indexpool::cli
