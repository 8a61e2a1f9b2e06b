// indexpool utilisation: how much of each bound errors use, over many random problems.
#include "indexpool/reports/utilisation.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/terminal.hpp"
#include "indexpool/verify/random_problem.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::cli {
namespace {

struct UtilisationOptions {
  std::vector<std::string> files;
  std::int64_t runs = 0;
  std::uint64_t seed = 20260101;
  std::string out;
  int jobs = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 64u));
  FormatOption format;
};

// Runs of one check, for all problems or a part of them.
using Key = std::tuple<std::string, std::string, std::string, std::string>;
struct Samples {
  std::vector<double> worst;
  std::int64_t elements = 0;
};
using Campaign = std::map<Key, Samples>;

void add(Campaign& campaign, const Record& record, const Problem& problem) {
  for (const Check& check : record.verdict.checks) {
    const bool held = check.status == Status::passed || check.status == Status::marginal;
    if (!held || check.compared == 0) continue;
    for (const std::string& part :
         {std::string("all"), "mode " + problem.mode, "fill " + problem.fill}) {
      Samples& samples = campaign[{record.op, record.implementation, check.name, part}];
      samples.worst.push_back(check.utilisation);
      samples.elements += check.compared;
    }
  }
}

// Modes with an error at all; a fill only where its errors stay far below those of the others.
std::vector<Record> records_of(Campaign campaign, std::int64_t runs, const std::string& repeat) {
  std::vector<Record> records;
  for (auto& [key, samples] : campaign) {
    const auto& [op, kernel, check, part] = key;
    reports::UtilisationRow names;
    names.op = op, names.kernel = kernel, names.check = check, names.of = part;
    names.campaign = runs;
    names.elements = samples.elements;
    const reports::UtilisationRow row = reports::summarise(std::move(names), samples.worst);
    if (row.worst == 0 || (part.starts_with("fill ") && !reports::loose(row))) continue;
    Record record = reports::utilisation_record(row, repeat);
    record.environment.version = INDEXPOOL_VERSION;
    records.push_back(std::move(record));
  }
  return records;
}

// What one thread saw. The alarms of correct kernels, which there must be none of, are kept as they
// are.
struct Share {
  Campaign campaign;
  std::map<std::int64_t, std::vector<Record>> alarms;  // by number of the problem
};

void run_share(const UtilisationOptions& options, std::atomic<std::int64_t>& next,
               const std::function<void(const std::string&)>& progress, Share& share) {
  verify::Options how;
  how.all_lane_orders = false;  // the same bytes again add nothing here
  for (std::int64_t i = next++; i < options.runs; i = next++) {
    const Problem problem = verify::random_problem(options.seed, i);
    progress(fmt::format("{}/{} {}", i + 1, options.runs, describe(problem)));
    for (Record& record : verify::verify_problem(problem, how)) {
      add(share.campaign, record, problem);
      const Status status = record.verdict.status;
      if (status != Status::failed && status != Status::error) continue;
      share.alarms[i].push_back(std::move(record));
    }
  }
}

// Samples are sorted before anything is made of them, so that threads change no byte.
Share merged(std::vector<Share> shares) {
  Share sum;
  for (Share& share : shares) {
    for (auto& [key, samples] : share.campaign) {
      Samples& all = sum.campaign[key];
      all.elements += samples.elements;
      all.worst.insert(all.worst.end(), samples.worst.begin(), samples.worst.end());
    }
    sum.alarms.merge(share.alarms);
  }
  return sum;
}

std::vector<Share> run_threads(const UtilisationOptions& options) {
  Progress progress;
  std::mutex terminal, trouble;
  std::exception_ptr failure;
  std::atomic<std::int64_t> next = 0;
  std::vector<Share> shares(static_cast<std::size_t>(options.jobs));
  const auto show = [&](const std::string& text) {
    const std::lock_guard lock(terminal);
    progress.show(text);
  };
  std::vector<std::jthread> threads;
  for (Share& share : shares) {
    threads.emplace_back([&] {
      try {
        run_share(options, next, show, share);
      } catch (...) {
        next = options.runs;  // the others stop as well
        const std::lock_guard lock(trouble);
        failure = std::current_exception();
      }
    });
  }
  threads.clear();
  if (failure) std::rethrow_exception(failure);
  return shares;
}

std::vector<Record> run_campaign(const UtilisationOptions& options) {
  Share all = merged(run_threads(options));
  const std::string repeat =
      fmt::format("indexpool utilisation --runs {} --seed {}", options.runs, options.seed);
  std::vector<Record> records = records_of(std::move(all.campaign), options.runs, repeat);
  for (auto& [number, alarms] : all.alarms) {
    records.insert(records.end(), alarms.begin(), alarms.end());
  }
  return records;
}

std::vector<Record> recorded(const UtilisationOptions& options) {
  std::vector<Record> records;
  for (const std::string& file : options.files) {
    for (Record& record : read_records(file)) records.push_back(std::move(record));
  }
  return records;
}

void show(const std::vector<Record>& records, reports::Format format) {
  const std::vector<reports::UtilisationRow> rows = reports::utilisation_rows(records);
  if (format == reports::Format::md) {
    print(reports::utilisation_markdown(records));
    return;
  }
  print(reports::render(reports::utilisation_table(rows), format));
  if (format != reports::Format::table) return;
  const reports::Table loose = reports::loose_table(rows);
  if (!loose.rows.empty()) {
    print("\nLoose: the bound is over a thousand times the largest error seen.\n" +
          reports::render(loose, format));
  }
}

int utilisation_with(const UtilisationOptions& options) {
  const reports::Format format = options.format.parsed();
  if (!options.files.empty() == (options.runs > 0)) {
    throw ConfigError("expected either files of records to look at, or --runs N to make some");
  }
  const std::vector<Record> records =
      options.files.empty() ? run_campaign(options) : recorded(options);
  if (!options.out.empty()) {
    write_records(options.out, records);
    note("records: " + options.out);
  }
  show(records, format);
  return exit_code(records);
}

std::function<int()> declare_utilisation(CLI::App& app) {
  auto options = std::make_shared<UtilisationOptions>();
  app.add_option("records", options->files, "files of records (JSON Lines) to look at");
  app.add_option("--runs", options->runs,
                 "random problems to run on the executor (10,000: minutes)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{10'000'000}));
  app.add_option("--seed", options->seed, "of the stream of problems")->capture_default_str();
  app.add_option("--jobs", options->jobs, "threads")->check(CLI::Range(1, 64));
  app.add_option("--out", options->out, "file for the records of the campaign");
  options->format.declare(app);
  return [options] { return utilisation_with(*options); };
}

}  // namespace

extern const Command utilisation_command = {
    "utilisation", "How much of each bound errors use, over many random problems; loose bounds",
    "  indexpool utilisation --runs 10000 --out utilisation.jsonl\n"
    "  indexpool utilisation reports/results/utilisation.jsonl\n",
    declare_utilisation};

}  // namespace indexpool::cli
