// The CPU executor as a target: its memory, its counters, no clock.
#include <cstring>

#include <fmt/format.h>

#include "indexpool/kernels/kernel.hpp"

namespace indexpool::kernels {
namespace {

class SimtTarget final : public Target {
 public:
  explicit SimtTarget(sim::simt::Options options) : session_{memory_, std::move(options), {}} {
    context_.simt = &session_;
  }

  std::string_view name() const override { return "simt"; }
  Environment environment() const override {
    Environment environment;
    environment.target = "simt";
    environment.device = "CPU executor of kernel source";
    environment.compiler = fmt::format("C++ compiler {}", __VERSION__);
    return environment;
  }

  std::byte* allocate(std::string buffer, std::int64_t bytes, std::byte poison,
                      bool sparse) override {
    return memory_.allocate(std::move(buffer), bytes, poison, sparse);
  }
  void release(std::byte* buffer) override { memory_.release(buffer); }
  void upload(std::byte* to, const void* from, std::int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void download(void* to, const std::byte* from, std::int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  std::string check_guards() override { return memory_.check_guards(); }

  LaunchContext& context() override { return context_; }
  void synchronize() override {}  // launches return when they are done
  std::optional<Measurement> measure(const std::function<void()>&, int, bool) override {
    return std::nullopt;
  }

 private:
  sim::simt::Memory memory_;
  sim::simt::Session session_;
  LaunchContext context_;
};

}  // namespace

std::unique_ptr<Target> make_simt_target(sim::simt::Options options) {
  return std::make_unique<SimtTarget>(std::move(options));
}

}  // namespace indexpool::kernels
