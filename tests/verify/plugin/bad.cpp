// Plugins that go wrong, each in one way: a row of a table, chosen when it is compiled (BEHAVIOUR).
// All answer rightly before or after they misbehave, so that nothing but the misbehaviour is wrong.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>

#include "naive.hpp"

namespace {

using std::chrono::milliseconds;

// One operation being called: what it may break, and how to answer it rightly.
struct Site {
  const void* input;
  struct Named {
    const char* name;
    indexpool_output output;
    std::size_t bytes;
  };
  std::vector<Named> outputs;
  std::function<int()> answer;

  std::byte* data() const { return static_cast<std::byte*>(outputs[0].output.data); }
};

volatile std::sig_atomic_t sink = 0;

// Volatile, so that the compiler cannot see what is coming.
int* volatile nowhere = nullptr;
char* volatile anywhere = reinterpret_cast<char*>(0x700000000000);

int null_write(const Site& site) {
  *nowhere = 1;
  return site.answer();
}
int null_read(const Site& site) {
  sink = nowhere[4];
  return site.answer();
}
int wild_write(const Site& site) {
  *anywhere = 1;
  return site.answer();
}
int write_input(const Site& site) {
  static_cast<volatile char*>(const_cast<void*>(site.input))[20] = 1;
  return site.answer();
}
int read_past_input(const Site& site) {
  // As far as the next page, wherever the input ends in this one.
  for (int i = 0; i < 1 << 20; ++i) sink = static_cast<const volatile char*>(site.input)[i];
  return site.answer();
}

// Writes outside the output, on the side and by the bytes that the environment names.
int outside(const Site& site) {
  const int result = site.answer();
  const char* name = std::getenv("PLUGIN_TEST_OUTPUT");
  const char* distance = std::getenv("PLUGIN_TEST_DISTANCE");
  if (name == nullptr || distance == nullptr) return result;
  for (const Site::Named& named : site.outputs) {
    if (std::string_view(named.name) != name) continue;
    const long bytes = std::atol(distance);
    auto* start = static_cast<volatile unsigned char*>(named.output.data);
    auto* end = start + static_cast<std::size_t>(named.output.capacity) * named.bytes;
    if (bytes < 0) start[bytes] = 0;
    if (bytes > 0) end[bytes - 1] = 0;
  }
  return result;
}

int stack_overflow(const Site& site) {
  volatile char frame[4096];
  frame[0] = 1;
  frame[4095] = 1;
  if (frame[0] == 0) return 0;
  const int result = stack_overflow(site);
  return result + frame[0];
}
int divide_by_zero(const Site& site) {
  volatile int number = 5, zero = 0;
  sink = number / zero;
  return site.answer();
}
int busy_loop(const Site& site) {
  for (;;) sink = 1;
  return site.answer();
}
int sleep_forever(const Site& site) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGALRM, SIGXCPU}) {
    std::signal(signal, SIG_IGN);
  }
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  return site.answer();
}
int second_call(const Site& site) {
  static int calls = 0;
  if (++calls == 2) null_write(site);
  return site.answer();
}
int too_few(const Site& site) {
  const int result = site.answer();
  *site.outputs[0].output.written -= 7;
  return result;
}
int too_many(const Site& site) {
  const int result = site.answer();
  *site.outputs[0].output.written += 1;
  return result;
}
int size_not_set(const Site& site) {
  const int result = site.answer();
  *site.outputs[0].output.written = -1;
  return result;
}
int unwritten(const Site& site) {
  const std::size_t at = site.outputs[0].bytes * 9;
  std::vector<std::byte> before(site.data() + at, site.data() + at + site.outputs[0].bytes);
  const int result = site.answer();
  std::memcpy(site.data() + at, before.data(), before.size());
  return result;
}
int differs(const Site& site) {
  static int calls = 0;
  const int result = site.answer();
  if (++calls == 2) site.data()[3] ^= std::byte{1};
  return result;
}
int wrong_value(const Site& site) {
  const int result = site.answer();
  site.data()[3] ^= std::byte{0x30};
  return result;
}
int error_code(const Site&) {
  std::fputs("first line\nno device of compute capability 9.0\n", stderr);
  return 7;
}
int unsupported(const Site&) { return INDEXPOOL_UNSUPPORTED; }
int exit_zero(const Site&) { std::exit(0); }
int quick_exit(const Site&) { _exit(3); }
int aborts(const Site&) {
  std::fputs("assertion `rows > 0' failed\n", stderr);
  std::abort();
}
int throws(const Site&) { throw std::runtime_error("no more streams"); }
int throws_number(const Site&) { throw 42; }  // NOLINT: the point of it
int kills_itself(const Site&) {
  std::raise(SIGKILL);
  return 0;
}
int prints_megabytes(const Site& site) {
  for (int i = 0; i < 1 << 17; ++i) std::printf("%062d\n", i);
  return site.answer();
}
int prints_without_end(const Site& site) {
  for (;;) std::fputs("still \x1b[31m\xff going\n", stdout);
  return site.answer();
}
int allocates_without_end(const Site& site) {
  constexpr std::size_t block = 1 << 20;
  for (;;) {
    char* memory = static_cast<char*>(std::malloc(block));
    if (memory == nullptr) continue;  // what it has is not given back
    std::memset(memory, 1, block);
    sink = memory[block / 2];
  }
  return site.answer();
}
int asks_for_too_much(const Site& site) {
  std::vector<char> memory(std::size_t{1} << 40);
  sink = memory[1];
  return site.answer();
}
int thread_left_running(const Site& site) {
  std::thread([] {
    for (;;) sink = 1;
  }).detach();
  return site.answer();
}
int thread_left_waiting(const Site& site) {  // a pool of workers: no fault
  std::thread([] {
    static std::atomic<int> work{0};
    work.wait(0);
  }).detach();
  return site.answer();
}
int writes_after_returning(const Site& site) {
  const int result = site.answer();
  auto* at = reinterpret_cast<volatile char*>(site.data());
  std::thread([at] {
    std::this_thread::sleep_for(milliseconds(2));
    at[5] = 1;
  }).detach();
  return result;
}
int crashes_in_a_thread(const Site& site) {
  std::thread([&site] { null_write(site); }).join();
  return site.answer();
}
int process_left_running(const Site& site) {
  if (fork() == 0) {
    for (;;) pause();
  }
  return site.answer();
}
int comes_back_twice(const Site& site) {
  fork();
  return site.answer();
}
int closes_everything(const Site& site) {
  for (int descriptor = 0; descriptor < 64; ++descriptor) close(descriptor);
  return site.answer();
}

struct Behaviour {
  std::string_view name;
  int (*run)(const Site& site);
};
constexpr Behaviour behaviours[] = {
    {"null_write", null_write},
    {"null_read", null_read},
    {"wild_write", wild_write},
    {"write_input", write_input},
    {"read_past_input", read_past_input},
    {"outside", outside},
    {"stack_overflow", stack_overflow},
    {"divide_by_zero", divide_by_zero},
    {"busy_loop", busy_loop},
    {"sleep_forever", sleep_forever},
    {"second_call", second_call},
    {"too_few", too_few},
    {"too_many", too_many},
    {"size_not_set", size_not_set},
    {"unwritten", unwritten},
    {"differs", differs},
    {"wrong_value", wrong_value},
    {"error_code", error_code},
    {"unsupported", unsupported},
    {"exit_zero", exit_zero},
    {"quick_exit", quick_exit},
    {"aborts", aborts},
    {"throws", throws},
    {"throws_number", throws_number},
    {"kills_itself", kills_itself},
    {"prints_megabytes", prints_megabytes},
    {"prints_without_end", prints_without_end},
    {"allocates_without_end", allocates_without_end},
    {"asks_for_too_much", asks_for_too_much},
    {"thread_left_running", thread_left_running},
    {"thread_left_waiting", thread_left_waiting},
    {"writes_after_returning", writes_after_returning},
    {"crashes_in_a_thread", crashes_in_a_thread},
    {"process_left_running", process_left_running},
    {"comes_back_twice", comes_back_twice},
    {"closes_everything", closes_everything},
};

constexpr const Behaviour& chosen() {
  for (const Behaviour& behaviour : behaviours) {
    if (behaviour.name == BEHAVIOUR) return behaviour;
  }
  throw "no such behaviour";
}
constexpr const Behaviour& behaviour = chosen();

constexpr std::size_t code_bytes(const indexpool_sizes& z) {
  switch (z.cache_dtype) {
    case INDEXPOOL_F32:
      return 4;
    case INDEXPOOL_BF16:
    case INDEXPOOL_F16:
      return 2;
    default:
      return 1;
  }
}

int pool(const indexpool_pool_args* a) {
  return behaviour.run(
      {a->keys,
       {{"pool_codes", a->pool_codes, code_bytes(*a->sizes)}, {"pool_scales", a->pool_scales, 4}},
       [a] { return naive::pool(a); }});
}

// The operations after the first are right, unless what they break is named by its output.
constexpr bool names_its_output = behaviour.name == "outside";

int quantize_query(const indexpool_quantize_query_args* a) {
  if (!names_its_output) return naive::quantize_query(a);
  return behaviour.run({a->queries,
                        {{"query_codes", a->query_codes, code_bytes(*a->sizes)},
                         {"query_scales", a->query_scales, 4}},
                        [a] { return naive::quantize_query(a); }});
}
int logits(const indexpool_logits_args* a) {
  if (!names_its_output) return naive::logits(a);
  return behaviour.run(
      {a->pool_codes, {{"logits", a->logits, 4}}, [a] { return naive::logits(a); }});
}
int topk(const indexpool_topk_args* a) {
  if (!names_its_output) return naive::topk(a);
  return behaviour.run(
      {a->logits, {{"selection", a->selection, 4}}, [a] { return naive::topk(a); }});
}

}  // namespace

int indexpool_plugin_abi(void) { return INDEXPOOL_PLUGIN_ABI; }

const indexpool_plugin* indexpool_plugin_table(void) {
  static const indexpool_plugin table{
      BEHAVIOUR, INDEXPOOL_ACCUMULATE_F32, pool, quantize_query, logits, topk, nullptr};
  return &table;
}
