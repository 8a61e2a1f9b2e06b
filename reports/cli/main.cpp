// The executable: finds the command, parses its options, turns errors into exit codes.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/names.hpp"

namespace indexpool::cli {
namespace {

void complain(const std::string& text) { fmt::print(stderr, "indexpool: {}\n", text); }

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command* command : commands()) names.emplace_back(command->name);
  return names;
}

// What CLI11 did not expect, with the options it may have been meant to be.
std::string unexpected(const CLI::App& app) {
  std::vector<std::string> known;
  for (const CLI::App* part : app.get_subcommands()) {
    for (const CLI::Option* option : part->get_options()) known.push_back(option->get_name());
  }
  // The values of an unknown option are left over as well: naming the option is enough.
  std::string options, words;
  for (const std::string& word : app.remaining(true)) {
    std::string& text = word.starts_with('-') ? options : words;
    if (!text.empty()) text += '\n';
    text += word.starts_with('-') ? unknown_text("option", word, known)
                                  : fmt::format("did not expect '{}'", word);
  }
  return options.empty() ? words : options;
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const bool extras = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  complain(extras ? unexpected(app) : error.what());
  const auto chosen = app.get_subcommands();
  const std::string name = chosen.empty() ? "" : " " + chosen.front()->get_name();
  fmt::print(stderr, "See indexpool{} --help.\n", name);
  return exit_usage;
}

int dispatch(int argc, char** argv) {
  CLI::App app(
      "Runs a pooled indexer's kernels beside a high-precision reference and a cost model.",
      "indexpool");
  app.set_version_flag("--version", INDEXPOOL_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 passed, 1 a verdict failed, 2 usage or input, 3 environment, 4 untrusted.\n"
      "Start with: indexpool run");
  std::map<std::string, std::function<int()>> actions;
  for (const Command* command : commands()) {
    CLI::App* part = app.add_subcommand(command->name, command->purpose);
    part->footer(std::string("Examples:\n") + command->examples);
    actions[command->name] = command->declare(*part);
  }
  const std::string first = argc > 1 ? argv[1] : "";
  if (!first.empty() && first.front() != '-' && !actions.contains(first)) {
    throw ConfigError(unknown_text("command", first, command_names()));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error);
  }
  return actions.at(app.get_subcommands().front()->get_name())();
}

int guarded(int argc, char** argv) {
  try {
    return dispatch(argc, argv);
  } catch (const ConfigError& error) {
    complain(error.what());
    return exit_usage;
  } catch (const EnvironmentError& error) {
    complain(error.what());
    return exit_environment;
  } catch (const std::filesystem::filesystem_error& error) {
    complain(error.what());
    return exit_environment;
  } catch (const std::bad_alloc&) {
    complain("out of memory; try fewer tokens or sequences");
    return exit_environment;
  } catch (const std::exception& error) {
    complain(fmt::format("internal error, please report it: {}", error.what()));
    return exit_failed;
  }
}

}  // namespace
}  // namespace indexpool::cli

int main(int argc, char** argv) { return indexpool::cli::guarded(argc, argv); }
